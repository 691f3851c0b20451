/* A shared object whose functions have no symbol once it is stripped, but for work(). */

#include <time.h>

#define NOINLINE __attribute__((noinline))

static double cpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Spends time in several places. */
static NOINLINE unsigned long burns(unsigned long value) {
    for (volatile int i = 0; i < 20000; i++)
        value = value * 7 + 1;
    for (volatile int i = 0; i < 20000; i++)
        value ^= value / 3;
    for (volatile int i = 0; i < 20000; i++)
        value += value << 5;
    return value;
}

static NOINLINE unsigned long calls(double seconds) {
    double end = cpu_seconds() + seconds;
    unsigned long value = 1;
    while (cpu_seconds() < end)
        value += burns(value);
    return value;
}

volatile unsigned long result;

void work(double seconds) { result = calls(seconds); }
