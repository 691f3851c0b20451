/* Reaches one function by three ways, for 50, 30 and 20 % of the time.
 * paths MILLISECONDS */

#include <stdlib.h>

#include "spin.h"

NOINLINE void work(long long time)
{
	spin_ns(time);
	spun += 1;
}

NOINLINE void left(long long time)
{
	work(time);
	spun += 2;
}

NOINLINE void deeper(long long time)
{
	work(time);
	spun += 3;
}

NOINLINE void right(long long time)
{
	work(time * 3 / 5);
	deeper(time * 2 / 5);
	spun += 4;
}

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;

	while (cpu_ns() < end) {
		left(10000000);
		right(10000000);
	}
	return 0;
}
