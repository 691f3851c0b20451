/* Calls through many libraries, each of which calls the next.
 * chain SECONDS FOLDER: with 0.so, 1.so and so on, whose function is chain_link */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	void *functions[1024] = {0};
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);

	for (int count = 0; argc > 2 && count < 1023; count++) {
		char path[4096];
		void *library;

		snprintf(path, sizeof path, "%s/%d.so", argv[2], count);
		library = dlopen(path, RTLD_NOW);
		if (!library)
			break;
		functions[count] = dlsym(library, "chain_link");
	}
	if (!functions[0])
		return 1;
	do
		((void (*)(void *const *))functions[0])(functions + 1);
	while (time(NULL) <= end);
	return 0;
}
