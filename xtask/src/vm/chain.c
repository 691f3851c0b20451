/* Burns CPU time at the end of a chain of twenty calls.
 *
 *   chain SECONDS   of CPU time
 */
#include <stdlib.h>
#include <time.h>

static double cpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

__attribute__((noipa)) double burn(double seconds) {
    double end = cpu_seconds() + seconds;
    while (cpu_seconds() < end)
        for (volatile int i = 0; i < 1000000; i++) {
        }
    return end;
}

/* The sum keeps the call from becoming a jump, which would leave no frame. */
#define LINK(name, callee)                                                                                   \
    __attribute__((noipa)) double name(double seconds) { return callee(seconds) + seconds; }

LINK(link_01, burn)
LINK(link_02, link_01)
LINK(link_03, link_02)
LINK(link_04, link_03)
LINK(link_05, link_04)
LINK(link_06, link_05)
LINK(link_07, link_06)
LINK(link_08, link_07)
LINK(link_09, link_08)
LINK(link_10, link_09)
LINK(link_11, link_10)
LINK(link_12, link_11)
LINK(link_13, link_12)
LINK(link_14, link_13)
LINK(link_15, link_14)
LINK(link_16, link_15)
LINK(link_17, link_16)
LINK(link_18, link_17)
LINK(link_19, link_18)
LINK(link_20, link_19)

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    return link_20(seconds) < 0;
}
