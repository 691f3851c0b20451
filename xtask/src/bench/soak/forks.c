/* Makes children that run no program of their own, one after the other.
 * forks COUNT MILLISECONDS: children, and the CPU time of each. */

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spin.h"

NOINLINE void work(long long time)
{
	spin_ns(time);
	spun += 1;
}

NOINLINE void make_child(long long time)
{
	pid_t child = fork();

	if (child == 0) {
		work(time);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	spun += 1;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 0;
	long long time = (argc > 2 ? atoll(argv[2]) : 0) * 1000000;

	while (count-- > 0)
		make_child(time);
	return 0;
}
