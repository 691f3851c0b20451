/* Burns CPU time of the calling thread, in small steps with a clock between them. */

#ifndef SPIN_H
#define SPIN_H

#include <time.h>

static volatile unsigned long spun;

static inline long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void spin_ns(long long time)
{
	long long end = cpu_ns() + time;

	do {
		unsigned long i;

		for (i = 0; i < 20000; i++)
			spun += i;
	} while (cpu_ns() < end);
}

#define NOINLINE __attribute__((noinline, noclone))

#endif
