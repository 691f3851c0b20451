/* A process whose first thread has ended: /proc shows it by another thread.
 * first_ended SECONDS */

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

volatile unsigned long sink;

__attribute__((noinline)) void after_main(void)
{
	for (int i = 0; i < 100000; i++)
		sink += i;
}

static void *thread(void *seconds)
{
	struct timespec begun, now;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		after_main();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begun.tv_sec < (long)seconds);
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t other;
	pthread_create(&other, NULL, thread, (void *)(argc > 1 ? atol(argv[1]) : 5));
	pthread_exit(NULL);
}
