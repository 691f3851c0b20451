/* Computes in functions whose stack frames are out of the ordinary, in turn and equally long.
 * frames MILLISECONDS */

#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#include "spin.h"

#define TURN 20000000LL

NOINLINE void work(void *memory)
{
	*(volatile char *)memory = 1;
	spin_ns(TURN);
	spun += 1;
}

NOINLINE void with_alloca(long size)
{
	work(alloca(size));
	spun += 2;
}

NOINLINE void with_array_of_any_length(long size)
{
	char array[size];

	work(array);
	spun += array[0];
}

NOINLINE void with_64_kilobytes(void)
{
	char array[64 * 1024];

	work(array);
	spun += array[0];
}

NOINLINE void with_200_kilobytes(void)
{
	char array[200 * 1024];

	work(array);
	spun += array[0];
}

NOINLINE void with_aligned_local(void)
{
	char array[64] __attribute__((aligned(64)));

	work(array);
	spun += array[0];
}

#ifdef __x86_64__
/* The stack is aligned on entry, and the function takes what it needs of it at run time: the frame is found through memory. */
NOINLINE __attribute__((force_align_arg_pointer)) void with_realigned_stack(long size)
{
	char array[64] __attribute__((aligned(64)));

	work(array);
	work(alloca(size));
	spun += array[0];
}

typedef double vector __attribute__((vector_size(32)));

NOINLINE __attribute__((target("avx"))) void with_vectors(long size)
{
	volatile vector values[4];

	values[size & 3] = (vector){ size, 1, 2, 3 };
	work((void *)values);
	spun += (unsigned long)values[size & 3][0];
}
#endif

int main(int argc, char **argv)
{
	long long end = cpu_ns() + (argc > 1 ? atoll(argv[1]) : 0) * 1000000;
	long size = 1000 + argc;

	while (cpu_ns() < end) {
		with_alloca(size);
		with_array_of_any_length(size);
		with_64_kilobytes();
		with_200_kilobytes();
		with_aligned_local();
#ifdef __x86_64__
		with_realigned_stack(size);
		if (__builtin_cpu_supports("avx"))
			with_vectors(size);
#endif
	}
	return 0;
}
