/* Calls functions of between.c, which call back.
 * around MILLISECONDS */

#include <stdlib.h>

#include "spin.h"

void outer_between(long turn);

NOINLINE void work_inside(void)
{
	spin_ns(1000000);
	spun += 1;
}

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;
	long turn;

	for (turn = 0; cpu_ns() < end; turn++)
		outer_between(turn);
	return 0;
}
