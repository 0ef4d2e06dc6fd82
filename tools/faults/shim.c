/* Makes one chosen call of a program fail, or kills the program there.
 *
 * Loaded with LD_PRELOAD. It counts the calls of one kind, in all processes that the program starts,
 * and acts on call number FAULT_AT. A number above the count changes nothing, so a loop over the
 * numbers ends by itself. The environment says what to do:
 *
 *   FAULT_STATE  file of 16 bytes, shared by all processes: calls counted, faults made (two uint64)
 *   FAULT_BELOW  absolute path of a folder: only calls on files and folders below it are counted
 *   FAULT_KIND   write, sync, rename, make, any (these four), or alloc
 *   FAULT_AT     number of the call, from 1; 0: count only
 *   FAULT_HOW    an error number, or "short" (write one half), or "kill" (SIGKILL before the call)
 *   FAULT_STAYS  1: all later calls of the kind fail too, as on a disk that stays full
 *   FAULT_LEAST  alloc: only requests of so many bytes or more. They are counted from the moment
 *                that a process opens something below FAULT_BELOW: not those of its start.
 *
 * System calls are made with syscall(2), and memory is taken from __libc_malloc and its relatives,
 * so nothing has to be looked up in the C library. Linux with glibc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

enum { WRITE = 1, SYNC = 2, RENAME = 4, MAKE = 8, ANY = 15, ALLOC = 16 };
enum { SHORT = -1, KILL = -2 };

static uint64_t *state; /* calls, faults */
static char below[PATH_MAX];
static uint64_t at, least;
static int kinds, how, stays, armed;

/* Reads the environment: at the start of a process, and after a fork that changed it. */
__attribute__((constructor)) void fault_begin(void) {
    const char *names[] = {"write", "sync", "rename", "make", "any", "alloc"};
    const int values[] = {WRITE, SYNC, RENAME, MAKE, ANY, ALLOC};
    const char *file = getenv("FAULT_STATE"), *kind = getenv("FAULT_KIND"), *text;
    if (!file || !kind || !getenv("FAULT_BELOW")) return;
    int handle = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (handle < 0) return;
    void *shared = (void *)syscall(SYS_mmap, NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    syscall(SYS_close, handle);
    if (shared == MAP_FAILED) return;
    snprintf(below, sizeof below, "%s/", getenv("FAULT_BELOW"));
    for (int i = 0; i < 6; i++)
        if (!strcmp(kind, names[i])) kinds = values[i];
    at = (text = getenv("FAULT_AT")) ? strtoull(text, NULL, 10) : 0;
    least = (text = getenv("FAULT_LEAST")) ? strtoull(text, NULL, 10) : 0;
    stays = (text = getenv("FAULT_STAYS")) && *text == '1';
    text = getenv("FAULT_HOW") ? getenv("FAULT_HOW") : "";
    how = !strcmp(text, "short") ? SHORT : !strcmp(text, "kill") ? KILL : atoi(text);
    state = shared;
}

/* Whether a path, relative to an open folder, is FAULT_BELOW or below it. */
static int within(int folder, const char *path) {
    char whole[PATH_MAX * 2], link[64];
    size_t length = 0;
    if (*path != '/') {
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t got = syscall(SYS_readlinkat, AT_FDCWD, link, whole, PATH_MAX - 1);
        if (got < 0) return 0;
        length = (size_t)got;
        whole[length++] = '/';
    }
    snprintf(whole + length, sizeof whole - length, "%s/", path);
    return !strncmp(whole, below, strlen(below));
}

/* Count a call; the error number it has to fail with, SHORT, or 0. */
static int act(int kind) {
    uint64_t number = __atomic_add_fetch(&state[0], 1, __ATOMIC_SEQ_CST);
    (void)kind;
    if (!at || (number != at && !(stays && number > at))) return 0;
    __atomic_add_fetch(&state[1], 1, __ATOMIC_SEQ_CST);
    if (how == KILL) kill(getpid(), SIGKILL);
    return how;
}

static int on_path(int kind, int folder, const char *path) {
    return state && (kinds & kind) && within(folder, path) ? act(kind) : 0;
}

static int on_file(int kind, int handle) {
    char link[64], path[PATH_MAX];
    if (!state || !(kinds & kind)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t got = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (got < 0) return 0;
    path[got] = 0;
    return *path == '/' ? on_path(kind, AT_FDCWD, path) : 0;
}

static int on_memory(size_t bytes) {
    return state && kinds == ALLOC && armed && bytes >= least && act(ALLOC);
}

#define FAIL_IF(fault) do { int error_ = (fault); if (error_ > 0) { errno = error_; return -1; } } while (0)

/* write */
ssize_t write(int handle, const void *data, size_t bytes) {
    int fault = on_file(WRITE, handle);
    FAIL_IF(fault);
    return syscall(SYS_write, handle, data, fault == SHORT && bytes > 1 ? bytes / 2 : bytes);
}
ssize_t pwrite64(int handle, const void *data, size_t bytes, off_t where) {
    int fault = on_file(WRITE, handle);
    FAIL_IF(fault);
    return syscall(SYS_pwrite64, handle, data, fault == SHORT && bytes > 1 ? bytes / 2 : bytes, where);
}
ssize_t pwrite(int handle, const void *data, size_t bytes, off_t where) {
    return pwrite64(handle, data, bytes, where);
}
ssize_t writev(int handle, const struct iovec *pieces, int count) {
    int fault = on_file(WRITE, handle);
    FAIL_IF(fault);
    return syscall(SYS_writev, handle, pieces, fault == SHORT && count > 1 ? count / 2 : count);
}
ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t bytes, unsigned flags) {
    int fault = on_file(WRITE, out);
    FAIL_IF(fault);
    return syscall(SYS_copy_file_range, in, from, out, to, fault == SHORT && bytes > 1 ? bytes / 2 : bytes, flags);
}
ssize_t sendfile64(int out, int in, off_t *from, size_t bytes) {
    int fault = on_file(WRITE, out);
    FAIL_IF(fault);
    return syscall(SYS_sendfile, out, in, from, fault == SHORT && bytes > 1 ? bytes / 2 : bytes);
}
ssize_t sendfile(int out, int in, off_t *from, size_t bytes) { return sendfile64(out, in, from, bytes); }
int ftruncate64(int handle, off_t bytes) {
    FAIL_IF(on_file(WRITE, handle));
    return (int)syscall(SYS_ftruncate, handle, bytes);
}
int ftruncate(int handle, off_t bytes) { return ftruncate64(handle, bytes); }

/* sync */
int fsync(int handle) {
    FAIL_IF(on_file(SYNC, handle));
    return (int)syscall(SYS_fsync, handle);
}
int fdatasync(int handle) {
    FAIL_IF(on_file(SYNC, handle));
    return (int)syscall(SYS_fdatasync, handle);
}

/* rename */
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    FAIL_IF(on_path(RENAME, to, new));
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) {
    FAIL_IF(on_path(RENAME, to, new));
    return (int)syscall(SYS_linkat, from, old, to, new, flags);
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

/* make */
int mkdirat(int folder, const char *path, mode_t mode) {
    FAIL_IF(on_path(MAKE, folder, path));
    return (int)syscall(SYS_mkdirat, folder, path, mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

static int opened(int folder, const char *path, int flags, mode_t mode) {
    if (state && kinds == ALLOC && !armed && within(folder, path)) armed = 1;
    if (flags & (O_CREAT | O_WRONLY | O_RDWR)) FAIL_IF(on_path(MAKE, folder, path));
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; \
    va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }

/* alloc */
#define NONE_IF(bytes) do { if (on_memory(bytes)) { errno = ENOMEM; return NULL; } } while (0)
void *malloc(size_t bytes) { NONE_IF(bytes); return __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { NONE_IF(count * bytes); return __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { NONE_IF(bytes); return __libc_realloc(old, bytes); }
void *memalign(size_t step, size_t bytes) { NONE_IF(bytes); return __libc_memalign(step, bytes); }
void *aligned_alloc(size_t step, size_t bytes) { NONE_IF(bytes); return __libc_memalign(step, bytes); }
int posix_memalign(void **found, size_t step, size_t bytes) {
    if (on_memory(bytes) || !(*found = __libc_memalign(step, bytes))) return ENOMEM;
    return 0;
}
void *mmap64(void *place, size_t bytes, int protection, int flags, int handle, off_t from) {
    if ((flags & MAP_ANONYMOUS) && (protection & PROT_WRITE) && on_memory(bytes)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, place, bytes, protection, flags, handle, from);
}
void *mmap(void *place, size_t bytes, int protection, int flags, int handle, off_t from) {
    return mmap64(place, bytes, protection, flags, handle, from);
}
