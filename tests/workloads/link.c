/* A link of a chain: a plugin that many copies are made of, each of which calls the next. */

#include "spin.h"

typedef void (*link_function)(void *const *rest);

NOINLINE void chain_link(void *const *rest)
{
	if (*rest)
		((link_function)*rest)(rest + 1);
	else
		spin_ns(20000000);
	spun += 1;
}
