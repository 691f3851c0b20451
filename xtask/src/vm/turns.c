/* Two functions in turn, in visits of some 20 ms, and how long each took.
 *
 *   turns SECONDS           prints a line each at its end: the function's name and the nanoseconds that passed in it, then `all` and the CPU time
 *   turns SECONDS TURN_NS   the same, with turns of exactly this length, 70 % of it in the first function
 *
 * Nothing else keeps the CPU busy, so the time that passes is CPU time. To ask for the latter is a system call, which must not stand between
 * visits: QEMU looks for an overflow of an event counter one count too early, finds the next one when the processor enters the kernel, and so
 * lets calls draw samples of the code before them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VISIT_NS = 20000000, WORDS = 1 << 16 };

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Nothing but arithmetic. */
__attribute__((noipa)) uint64_t compute(uint64_t steps) {
    uint64_t value = 1;
    for (uint64_t step = 0; step < steps; step++)
        value = value * 6364136223846793005ull + step;
    return value;
}

static uint32_t next[WORDS];

/* Loads, each from where the one before says. */
__attribute__((noipa)) uint64_t chase(uint64_t steps) {
    uint32_t at = 0;
    for (uint64_t step = 0; step < steps; step++)
        at = *(volatile uint32_t *)&next[at];
    return at;
}

typedef uint64_t (*work)(uint64_t steps);

static uint64_t time_of(work work, uint64_t steps, clockid_t clock) {
    uint64_t start = nanoseconds(clock);
    work(steps);
    return nanoseconds(clock) - start;
}

static uint64_t time_until(work work, uint64_t end) {
    uint64_t start = nanoseconds(CLOCK_MONOTONIC), now = start;
    while (now < end) {
        work(2000);
        now = nanoseconds(CLOCK_MONOTONIC);
    }
    return now - start;
}

/* Steps that take as long as a visit. */
static uint64_t steps_of_visit(work work) {
    uint64_t steps = 100000;
    return VISIT_NS * steps / time_of(work, steps, CLOCK_PROCESS_CPUTIME_ID);
}

int main(int argc, char **argv) {
    for (uint32_t word = 0; word < WORDS; word++)
        next[word] = (word + 40503) % WORDS;
    uint64_t end = nanoseconds(CLOCK_MONOTONIC) + (argc > 1 ? atof(argv[1]) : 0) * 1e9;
    uint64_t compute_steps = steps_of_visit(compute), chase_steps = steps_of_visit(chase);
    uint64_t compute_ns = 0, chase_ns = 0;
    uint64_t turn = argc > 2 ? atoll(argv[2]) : 0, begun = nanoseconds(CLOCK_MONOTONIC);
    for (; turn > 0 && begun + turn < end; begun += turn) {
        compute_ns += time_until(compute, begun + turn / 10 * 7);
        chase_ns += time_until(chase, begun + turn);
    }
    while (turn == 0 && nanoseconds(CLOCK_MONOTONIC) < end) {
        compute_ns += time_of(compute, compute_steps, CLOCK_MONOTONIC);
        chase_ns += time_of(chase, chase_steps, CLOCK_MONOTONIC);
    }
    printf("compute %llu\nchase %llu\nall %llu\n", (unsigned long long)compute_ns, (unsigned long long)chase_ns,
           (unsigned long long)nanoseconds(CLOCK_PROCESS_CPUTIME_ID));
}
