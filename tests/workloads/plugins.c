/* Loads two plugins in turn, so that the second comes to lie where the first was.
 * plugins MILLISECONDS ONE TWO: files of the plugins, whose entries are plugin_one and plugin_two */

#include <dlfcn.h>
#include <stdlib.h>

#include "spin.h"

static unsigned long lay_elsewhere;

static void *load(const char *file, const char *name, void (**entry)(void))
{
	static void *last;
	void *plugin = dlopen(file, RTLD_NOW);

	if (!plugin)
		exit(1);
	*(void **)entry = dlsym(plugin, name);
	if (last && last != *(void **)entry)
		lay_elsewhere++;
	last = *(void **)entry;
	return plugin;
}

NOINLINE void use_one(const char *file)
{
	void (*entry)(void);
	void *plugin = load(file, "plugin_one", &entry);

	entry();
	dlclose(plugin);
}

NOINLINE void use_two(const char *file)
{
	void (*entry)(void);
	void *plugin = load(file, "plugin_two", &entry);

	entry();
	dlclose(plugin);
}

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;

	while (argc > 3 && cpu_ns() < end) {
		use_one(argv[2]);
		use_two(argv[3]);
	}
	/* Status 2: the test has tested nothing, as the plugins did not share their place. */
	return lay_elsewhere ? 2 : 0;
}
