/* Functions between others: of this file only debuggers may know how to walk its frames. `nobody_calls` is there to be dropped. */

#include <alloca.h>

#include "spin.h"

void work_inside(void);

NOINLINE void inner_between(long turn)
{
	volatile long local[40];

	local[turn % 40] = turn;
	work_inside();
	spun += local[turn % 40];
}

NOINLINE void outer_between(long turn)
{
	char *room = alloca(64 + turn % 64);

	__asm__ volatile("" : : "r"(room) : "memory");
	inner_between(turn);
	spun += room[0] = (char)turn;
}

NOINLINE void nobody_calls(long turn)
{
	volatile long local[400];

	for (; turn < 400; turn++)
		local[turn] = spun + turn;
	outer_between(local[turn - 1]);
	spun += 5;
}
