/* A plugin, compiled several times: its entry is called NAME. With FUNCTIONS it has as many functions more, which nobody calls, and two
 * rows of an unwind table for each. */

#include "spin.h"

#ifdef FUNCTIONS
#define TEXT(number) #number
#define TIMES(number) ".rept " TEXT(number) "\n"
__asm__(".text\n" TIMES(FUNCTIONS)
	".cfi_startproc\n nop\n .cfi_adjust_cfa_offset 8\n nop\n .cfi_adjust_cfa_offset -8\n nop\n .cfi_endproc\n"
	".endr\n");
#endif

NOINLINE void NAME(void)
{
	spin_ns(30000000);
	spun += 1;
}
