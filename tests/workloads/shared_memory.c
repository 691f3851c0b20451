/* A process made with CLONE_VM runs what its parent has mapped after it was made.
 * shared_memory SECONDS PLUGIN: its entry is plugin_one */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*volatile entry)(void);
static char stack[1 << 20];

__attribute__((noinline)) void use_one(void)
{
	entry();
	__asm__ volatile("");
}

static int child(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!entry)
		usleep(1000);
	for (;;)
		use_one();
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 1;
	int pid = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
	void *plugin;

	usleep(1500000);
	plugin = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
	if (pid < 0 || !plugin)
		exit(1);
	*(void **)&entry = dlsym(plugin, "plugin_one");
	sleep(seconds);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
