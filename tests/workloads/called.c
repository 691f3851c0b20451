/* Calls a function a known number of times: two of three times from one caller, the third from another.
 * called N: N calls, 100 microseconds apart, so that the cost of a breakpoint does not fill the time.
 * The label counted_body lies where counted has set its frame pointer up. */

#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline, noclone)) void leaf(void)
{
	sink += 1;
}

__attribute__((noinline, noclone)) void counted(void)
{
	leaf();
	__asm__ volatile(".globl counted_body\ncounted_body:\n\tnop");
	sink += 1;
}

__attribute__((noinline, noclone)) void caller_a(void)
{
	counted();
	sink += 2;
}

__attribute__((noinline, noclone)) void caller_b(void)
{
	counted();
	sink += 3;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 0;
	long i;

	for (i = 0; i < calls; i++) {
		long long end = now_ns() + 100000;

		if (i % 3 == 2)
			caller_b();
		else
			caller_a();
		while (now_ns() < end)
			;
	}
	return 0;
}
