/* Functions by hand whose frames call-frame information describes each in its own way, or not at all. They call `work` in turn.
 * rules MILLISECONDS KIND... */

#include <stdlib.h>

#include "spin.h"

NOINLINE void work(void)
{
	spin_ns(20000000);
	spun += 1;
}

/* By %rbx, as the dynamic loader finds the frame of its resolver. */
__asm__(".globl by_rbx\n.type by_rbx, @function\nby_rbx:\n.cfi_startproc\n"
		"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
		"mov %rsp, %rbx\n.cfi_def_cfa %rbx, 16\n"
		"sub $200, %rsp\nand $-64, %rsp\ncall uses_rbx\n"
		"mov %rbx, %rsp\n.cfi_def_cfa %rsp, 16\n"
		"pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size by_rbx, . - by_rbx");

/* Saves %rbx and uses it for something else. */
__asm__(".globl uses_rbx\n.type uses_rbx, @function\nuses_rbx:\n.cfi_startproc\n"
		"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
		"xor %ebx, %ebx\ncall work\n"
		"pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size uses_rbx, . - uses_rbx");

/* By a word in the frame plus 8, as cryptography by hand does: DW_CFA_def_cfa_expression of DW_OP_breg7 152, DW_OP_deref, DW_OP_plus_uconst 8. */
__asm__(".globl by_word\n.type by_word, @function\nby_word:\n.cfi_startproc\n"
		"mov %rsp, %rax\n.cfi_def_cfa %rax, 8\n"
		"sub $256, %rsp\nand $-64, %rsp\nmov %rax, 152(%rsp)\n"
		".cfi_escape 0x0f, 0x06, 0x77, 0x98, 0x01, 0x06, 0x23, 0x08\n"
		"call work\n"
		"mov 152(%rsp), %rax\n.cfi_def_cfa %rax, 8\n"
		"mov %rax, %rsp\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n.size by_word, . - by_word");

/* With a frame of more than 2 MiB. */
__asm__(".globl by_large_frame\n.type by_large_frame, @function\nby_large_frame:\n.cfi_startproc\n"
		"sub $5000008, %rsp\n.cfi_def_cfa_offset 5000016\n"
		"call work\n"
		"add $5000008, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size by_large_frame, . - by_large_frame");

/* Without call-frame information, and without a frame pointer of its own: %rbp is the caller's. */
__asm__(".globl undescribed\n.type undescribed, @function\nundescribed:\n"
		"sub $24, %rsp\ncall work\nadd $24, %rsp\nret\n.size undescribed, . - undescribed");

void by_rbx(void);
void by_word(void);
void by_large_frame(void);
void undescribed(void);

/* Keeps its frame in %rbp, where `undescribed` leaves it. */
__attribute__((optimize("no-omit-frame-pointer"))) int main(int argc, char **argv)
{
	long left = atol(argv[1]) / 20;
	while (left > 0)
		for (int i = 2; i < argc; i++, left--)
			switch (argv[i][0]) {
			case 'r': by_rbx(); break;
			case 'w': by_word(); break;
			case 'l': by_large_frame(); break;
			default: undescribed(); break;
			}
	return 0;
}
