/* Computes in functions that the C library calls, that threads begin with, and in the kernel; then calls a function of the library 10 times.
 * through_library MILLISECONDS */

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "spin.h"

#define ITEMS 64

NOINLINE int compare(const void *a, const void *b)
{
	spin_ns(100000);
	return *(const int *)a - *(const int *)b;
}

NOINLINE void sort(void)
{
	int items[ITEMS], i;

	for (i = 0; i < ITEMS; i++)
		items[i] = i * 7919 % ITEMS;
	qsort(items, ITEMS, sizeof(int), compare);
	spun += items[0];
}

NOINLINE void *in_thread(void *argument)
{
	spin_ns(20000000);
	spun += 2;
	return argument;
}

NOINLINE void run_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
		pthread_join(thread, NULL);
	spun += 3;
}

/* Mostly in the kernel. */
NOINLINE void read_zeros(void)
{
	static char buffer[1 << 20];
	int i, zero = open("/dev/zero", O_RDONLY);

	for (i = 0; i < 200; i++)
		spun += read(zero, buffer, sizeof(buffer));
	close(zero);
}

NOINLINE void call_library(void)
{
	int i;

	for (i = 0; i < 10; i++)
		spun += getppid();
}

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;

	while (cpu_ns() < end) {
		sort();
		run_thread();
		read_zeros();
	}
	call_library();
	return 0;
}
