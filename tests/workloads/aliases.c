// Functions of several names, and copies of functions that the compiler makes.
#include <time.h>

#define BURN(factor)                                                                                                   \
    long sum = 1;                                                                                                      \
    for (long i = 0; i < rounds; i++) {                                                                                \
        sum = sum * (factor) + i;                                                                                      \
        __asm__ volatile("" : "+r"(sum));                                                                              \
    }                                                                                                                  \
    return sum

__attribute__((noinline)) long public_name(long rounds) { BURN(3); }
extern __typeof(public_name) __public_name __attribute__((alias("public_name")));
static __typeof(public_name) __GI_public_name __attribute__((alias("public_name"), used));

// The same code twice: linkers can make one of them.
__attribute__((noinline)) long folded_one(long rounds) { BURN(5); }
__attribute__((noinline)) long folded_two(long rounds) { BURN(5); }

// Always called with the same factor: the compiler makes a copy for it.
static __attribute__((noinline)) long copied(long rounds, int factor) { BURN(factor); }

int main(void) {
    clock_t end = clock() + CLOCKS_PER_SEC * 6 / 10;
    long total = 0;
    while (clock() < end) {
        total += public_name(100000);
        total += folded_one(50000) + folded_two(50000);
        total += copied(100000, 7);
    }
    return total == 1;
}
