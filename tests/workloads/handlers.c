/* Computes in signal handlers that run on a stack of their own.
 * handlers MILLISECONDS */

#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "spin.h"

static char signal_stack[256 * 1024];
static sigjmp_buf before_fault;
static volatile char *unmapped;

NOINLINE void work_in_handler(void)
{
	spin_ns(10000000);
	spun += 1;
}

void on_fault(int signal)
{
	work_in_handler();
	siglongjmp(before_fault, signal);
}

void on_timer(int signal)
{
	work_in_handler();
	spun += signal;
}

NOINLINE void faulting(void)
{
	*unmapped = 1;
	spun += 2;
}

NOINLINE void interrupted(void)
{
	unsigned long i;

	for (i = 0; i < 30000000; i++)
		spun += i;
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };

	sigaction(signal, &action, NULL);
}

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;
	stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
	struct itimerval every = { .it_interval = { .tv_usec = 30000 }, .it_value = { .tv_usec = 30000 } };

	unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, NULL);
	handle(SIGSEGV, on_fault);
	handle(SIGPROF, on_timer);
	setitimer(ITIMER_PROF, &every, NULL);
	while (cpu_ns() < end) {
		interrupted();
		if (sigsetjmp(before_fault, 1) == 0)
			faulting();
	}
	return 0;
}
