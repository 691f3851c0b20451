/* Computes at the bottom of a recursion.
 * deep DEPTH MILLISECONDS: DEPTH calls of descend between main and work. */

#include <stdlib.h>

#include "spin.h"

NOINLINE void work(long long time)
{
	spin_ns(time);
	spun += 1;
}

NOINLINE void descend(long depth, long long time)
{
	if (depth <= 1)
		work(time);
	else
		descend(depth - 1, time);
	/* Keeps the call from being a jump. */
	spun += depth;
}

int main(int argc, char **argv)
{
	long depth = argc > 1 ? atol(argv[1]) : 1;
	long long time = (argc > 2 ? atoll(argv[2]) : 0) * 1000000;

	descend(depth, time);
	return 0;
}
