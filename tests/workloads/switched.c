/* Computes on stacks that lie below and above the caller's, and on the stack of a context of its own.
 * switched MILLISECONDS [context]: with it, on the stack of a context alone, else on the others alone */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "spin.h"

#define STACK (256 * 1024)
#define TURN 30000000LL

/* Calls a function on another stack, as a library that grows stacks does: described by the frame pointer, which stays. */
void call_on(void *top_of_stack, void (*function)(void));

#if defined(__x86_64__)
__asm__(".text\n"
	".type call_on, @function\n"
	"call_on:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	mov %rdi, %rsp\n"
	"	call *%rsi\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size call_on, . - call_on\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".type call_on, %function\n"
	"call_on:\n"
	".cfi_startproc\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset x29, -16\n"
	"	.cfi_offset x30, -8\n"
	"	mov x29, sp\n"
	"	.cfi_def_cfa x29, 16\n"
	"	mov sp, x0\n"
	"	blr x1\n"
	"	mov sp, x29\n"
	"	.cfi_def_cfa sp, 16\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n"
	".cfi_endproc\n"
	".size call_on, . - call_on\n");
#endif

static char *stacks;
static ucontext_t main_context, own_context;

NOINLINE void work(void)
{
	spin_ns(TURN);
	spun += 1;
}

NOINLINE void on_lower_stack(void)
{
	work();
	spun += 2;
}

NOINLINE void on_higher_stack(void)
{
	work();
	spun += 3;
}

/* Runs on the lower of the two stacks, so that the other one lies above its frame. */
NOINLINE void between(void)
{
	call_on(stacks + 2 * STACK, on_higher_stack);
	spun += 4;
}

NOINLINE void in_own_context(void)
{
	for (;;) {
		work();
		swapcontext(&own_context, &main_context);
	}
}

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;

	stacks = mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		return 1;
	getcontext(&own_context);
	own_context.uc_stack.ss_sp = stacks + 2 * STACK;
	own_context.uc_stack.ss_size = STACK;
	makecontext(&own_context, in_own_context, 0);
	while (cpu_ns() < end) {
		if (argc > 2) {
			swapcontext(&main_context, &own_context);
			continue;
		}
		/* The stack of a main thread is the highest. */
		call_on(stacks + STACK, on_lower_stack);
		call_on(stacks + STACK, between);
	}
	return 0;
}
