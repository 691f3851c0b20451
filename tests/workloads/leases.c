/* Maps files that it holds write leases on, and works in them: leases DIRECTORY MILLISECONDS COUNT. Who opens such a file waits until the
 * lease is broken, by /proc/sys/fs/lease-break-time. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spin.h"

#ifdef __x86_64__
/* dec %rdi; jne; ret */
static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#else
/* subs x0, x0, #1; b.ne; ret */
static const unsigned char code[] = { 0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#endif

int main(int argc, char **argv)
{
	long long end;
	int count = argc > 3 ? atoi(argv[3]) : 0, at;
	void (**work)(long) = calloc(count + 1, sizeof(*work));
	char page[8192] = "\177ELF", path[4096];

	signal(SIGIO, SIG_IGN);
	memcpy(page + 4096, code, sizeof(code));
	for (at = 0; at < count; at++) {
		int file;
		char *mapped;

		snprintf(path, sizeof(path), "%s/leased-%d.so", argv[1], at);
		file = open(path, O_RDWR | O_CREAT, 0755);
		if (write(file, page, sizeof(page)) != sizeof(page))
			return 1;
		close(file);
		file = open(path, O_RDONLY);
		if (fcntl(file, F_SETLEASE, F_WRLCK))
			return 2;
		mapped = mmap(NULL, sizeof(page), PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
		if (mapped == MAP_FAILED)
			return 3;
		*(void **)&work[at] = mapped + 4096;
	}
	end = cpu_ns() + atoll(argv[2]) * 1000000;
	while (cpu_ns() < end)
		for (at = 0; at < count; at++)
			work[at](100000);
	return 0;
}
