/* Does the same in turns of one length: 70 % of each in turn_one, 20 % in turn_two, 10 % in turn_three.
 * turns MILLISECONDS MICROSECONDS: for that much CPU time, in turns that long; prints the CPU time of each function in ns */

#include <stdio.h>
#include <stdlib.h>

#include "spin.h"

static volatile unsigned long value = 1;

/* Works until then, and says when it was. */
#define TURN(name)                                      \
	NOINLINE long long name(long long end)          \
	{                                               \
		long long now;                          \
		int i;                                  \
							\
		do {                                    \
			for (i = 0; i < 2000; i++)      \
				value = value * 6364136223846793005ul + 1; \
			now = cpu_ns();               \
		} while (now < end);                    \
		return now;                             \
	}

TURN(turn_one)
TURN(turn_two)
TURN(turn_three)

int main(int argc, char **argv)
{
	long long time = (argc > 1 ? atoll(argv[1]) : 0) * 1000000;
	long long turn = (argc > 2 ? atoll(argv[2]) : 1000) * 1000;
	long long taken[3] = { 0 };
	long long begin = cpu_ns(), now = begin, next = begin, before;

	while (now - begin < time) {
		before = now;
		now = turn_one(next + turn * 7 / 10);
		taken[0] += now - before;
		before = now;
		now = turn_two(next + turn * 9 / 10);
		taken[1] += now - before;
		before = now;
		now = turn_three(next += turn);
		taken[2] += now - before;
	}
	printf("turn_one %lld\nturn_two %lld\nturn_three %lld\n", taken[0], taken[1], taken[2]);
	return 0;
}
