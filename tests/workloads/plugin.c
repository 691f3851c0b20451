/* A plugin, compiled twice: its entry is called NAME. */

#include "spin.h"

NOINLINE void NAME(void)
{
	spin_ns(30000000);
	spun += 1;
}
