/* Uses CPU time in a function whose name the build chooses (-DFUNCTION=name).
 *
 *   burn SECONDS                   burns
 *   burn SECONDS delete            deletes its own file first
 *   burn SECONDS replace FILE      moves FILE over its own file first
 *   burn SECONDS memfd             runs again from a copy in memory
 *   burn SECONDS exec FILE ARG...  burns, then becomes FILE
 *   burn SECONDS vsyscall          asks the old way what time it is (x86_64)
 *   burn SECONDS turns FILE...     calls work() of each shared object, one loaded at a time
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double cpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void takes_turns(void) {
    for (volatile int i = 0; i < 100000; i++) {
    }
}

__attribute__((noinline)) void FUNCTION(double seconds) {
    double end = cpu_seconds() + seconds;
    while (cpu_seconds() < end)
        takes_turns();
}

#ifdef PLUGIN
void work(double seconds) { FUNCTION(seconds); }
#else
static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void run_from_memory(char *seconds) {
    int to = memfd_create("copy", 0), from = open("/proc/self/exe", O_RDONLY);
    while (sendfile(to, from, NULL, 1 << 20) > 0) {
    }
    char *arguments[] = {"copy", seconds, NULL};
    fexecve(to, arguments, environ);
    fail("fexecve");
}

static void call_vsyscall(double seconds) {
    long (*old_time)(long *) = (long (*)(long *))0xffffffffff600400;
    double end = cpu_seconds() + seconds;
    while (cpu_seconds() < end)
        for (int i = 0; i < 1000; i++)
            old_time(NULL);
}

#ifndef STATIC
static void take_turns(double seconds, char **files) {
    for (; *files; files++) {
        void *object = dlopen(*files, RTLD_NOW);
        if (!object)
            exit(1);
        ((void (*)(double))dlsym(object, "work"))(seconds);
        dlclose(object);
    }
}
#endif

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    const char *action = argc > 2 ? argv[2] : "";
    if (!strcmp(action, "delete") && unlink(argv[0]))
        fail("unlink");
    if (!strcmp(action, "replace") && rename(argv[3], argv[0]))
        fail("rename");
    if (!strcmp(action, "memfd"))
        run_from_memory(argv[1]);
    if (!strcmp(action, "vsyscall")) {
        call_vsyscall(seconds);
        return 0;
    }
#ifndef STATIC
    if (!strcmp(action, "turns")) {
        take_turns(seconds, argv + 3);
        return 0;
    }
#endif
    FUNCTION(seconds);
    if (!strcmp(action, "exec")) {
        execv(argv[3], argv + 3);
        fail("execv");
    }
    return 0;
}
#endif
