/* Works in plugins, one after the other; each is loaded when its turn comes first, and stays.
 * in_turn MILLISECONDS PLUGIN...: the entry of folder/NAME.so is NAME; each turn lasts so long, however much of the CPU it gets */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "spin.h"

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

NOINLINE void use_plugin(const char *file, long long time)
{
	const char *base = strrchr(file, '/');
	char name[64] = "";
	void *plugin = dlopen(file, RTLD_NOW);
	void (*entry)(void) = NULL;
	long long end = now_ns() + time;

	strncat(name, base ? base + 1 : file, sizeof(name) - 1);
	name[strcspn(name, ".")] = 0;
	if (plugin)
		*(void **)&entry = dlsym(plugin, name);
	if (!entry)
		exit(1);
	while (now_ns() < end)
		entry();
}

int main(int argc, char **argv)
{
	long long time = (argc > 1 ? atoll(argv[1]) : 0) * 1000000;
	int turn;

	for (turn = 2; turn < argc; turn++)
		use_plugin(argv[turn], time);
	return 0;
}
