/* Asks for the time, in the kernel's virtual object, as often as it can.
 * clock MILLISECONDS */

#include <stdlib.h>
#include <time.h>

#include "spin.h"

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

NOINLINE void ask(long long end)
{
	while (now_ns() < end)
		spun += 1;
}

int main(int argc, char **argv)
{
	ask(now_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000);
	return 0;
}
