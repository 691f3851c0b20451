// Makes code at run time, and tells its names in the way that its first argument says. Names get the same CPU time where
// nothing else is said.
//
// map-append   a perf map that grows: one place is called first_code, then second_code
// map-replace  a perf map that is written anew: the same names
// map-fork     a child by fork goes on in first_code, while its parent writes second_code in its own copy of the place: two thirds and one
//              third of the time
// map-turns    the place is made writable and executable in turn, and keeps its name first_code
// dump         a jitdump file: one place is called first_code, then second_code, and its records come late
// dump-fork    as map-fork, with a jitdump file
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CODE = 256, PLACE = 65536 };

static unsigned char *place;
static int dump = -1;
static char held[4096];
static size_t held_len;

// Needs nothing but its registers, so that it runs wherever it is copied to.
__attribute__((noinline, aligned(64))) long template(long rounds) {
    long sum = 1;
    for (long i = 0; i < rounds; i++) {
        sum = sum * 3 + i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// Runs the code that lies at the place for so much CPU time.
static void run(double seconds) {
    long (*code)(long) = (long (*)(long))(uintptr_t)place;
    uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(seconds * 1e9);
    while (now(CLOCK_THREAD_CPUTIME_ID) < end) code(100000);
}

static void make_code(void) {
    memcpy(place, (void *)(uintptr_t)template, CODE);
    __builtin___clear_cache((char *)place, (char *)place + CODE);
}

static void path_of_map(char *path) { sprintf(path, "/tmp/perf-%d.map", getpid()); }

static void append(const char *name) {
    char path[64];
    path_of_map(path);
    FILE *map = fopen(path, "a");
    fprintf(map, "%lx %x %s\n", (unsigned long)(uintptr_t)place, CODE, name);
    fclose(map);
}

static void write_anew(const char *name) {
    char path[64], made[80];
    path_of_map(path);
    sprintf(made, "%s.new", path);
    FILE *map = fopen(made, "w");
    fprintf(map, "%lx %x %s\n", (unsigned long)(uintptr_t)place, CODE, name);
    fclose(map);
    rename(made, path);
}

static void hold(const void *bytes, size_t len) {
    memcpy(held + held_len, bytes, len);
    held_len += len;
}

static void flush(void) {
    if (write(dump, held, held_len) < 0) exit(1);
    held_len = 0;
}

static void open_dump(void) {
#ifdef __aarch64__
    uint32_t machine = 183;
#else
    uint32_t machine = 62;
#endif
    char path[64];
    sprintf(path, "jit-%d.dump", getpid());
    dump = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
    uint32_t header[6] = {0x4a695444, 1, 40, machine, 0, (uint32_t)getpid()};
    uint64_t times[2] = {now(CLOCK_MONOTONIC), 0};
    hold(header, sizeof header);
    hold(times, sizeof times);
    flush();
    // The mark by which profilers find the file.
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
}

static void record(const char *name, uint32_t line) {
    static uint64_t index;
    uint64_t address = (uintptr_t)place, time = now(CLOCK_MONOTONIC);
    const char *file = "made.lang";
    uint32_t lines[2] = {2, (uint32_t)(16 + 16 + 16 + strlen(file) + 1)};
    uint64_t entries[3] = {address, 1, address};
    uint32_t number[2] = {line, 0};
    hold(lines, sizeof lines);
    hold(&time, sizeof time);
    hold(entries, sizeof entries);
    hold(number, sizeof number);
    hold(file, strlen(file) + 1);
    uint32_t load[2] = {0, (uint32_t)(16 + 8 + 32 + strlen(name) + 1 + CODE)};
    uint32_t ids[2] = {(uint32_t)getpid(), (uint32_t)getpid()};
    uint64_t code[4] = {address, address, CODE, index++};
    hold(load, sizeof load);
    hold(&time, sizeof time);
    hold(ids, sizeof ids);
    hold(code, sizeof code);
    hold(name, strlen(name) + 1);
    hold(place, CODE);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "map-append";
    double seconds = argc > 2 ? atof(argv[2]) : 0.6;
    place = mmap(NULL, PLACE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    make_code();
    if (!strcmp(way, "map-append")) {
        append("first_code");
        run(seconds);
        append("second_code");
        run(seconds);
    } else if (!strcmp(way, "map-replace")) {
        write_anew("first_code");
        run(seconds);
        write_anew("second_code");
        run(seconds);
    } else if (!strcmp(way, "map-turns")) {
        append("first_code");
        for (double done = 0; done < seconds; done += 0.02) {
            mprotect(place, PLACE, PROT_READ | PROT_WRITE);
            place[CODE] += 1;
            mprotect(place, PLACE, PROT_READ | PROT_EXEC);
            run(0.02);
        }
    } else if (!strcmp(way, "dump")) {
        open_dump();
        record("first_code", 11);
        run(seconds);
        record("second_code", 22);
        run(seconds);
        flush();
    } else {
        int dumps = !strcmp(way, "dump-fork");
        if (dumps) {
            open_dump();
            record("first_code", 11);
            flush();
        } else {
            append("first_code");
        }
        run(seconds / 2);
        pid_t child = fork();
        if (child == 0) {
            run(seconds);
            _exit(0);
        }
        // A map has no times: what is written a moment later may be taken for what the child had.
        run(seconds / 2);
        if (dumps) {
            record("second_code", 22);
            flush();
        } else {
            append("second_code");
        }
        run(seconds);
        waitpid(child, NULL, 0);
    }
    char path[64];
    path_of_map(path);
    // Whoever wants it has seen it.
    unlink(path);
    return 0;
}
