// Functions that nobody calls, longer than all code of a small program: the linker removes them, their debug information stays.
__attribute__((noinline)) void removed_by_the_linker(void) { __asm__ volatile(".fill 400000, 1, 0"); }
__attribute__((noinline)) void removed_as_well(void) { __asm__ volatile(".fill 600000, 1, 0"); }
