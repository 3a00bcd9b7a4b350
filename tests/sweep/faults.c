/*
 * Loaded into stvc and every program that it starts (LD_PRELOAD). Numbers each call that changes
 * files below a folder, and at one of them kills the process group, tears the write, or makes the
 * call fail; or records all calls with their data.
 *
 * FAULTS_ROOT    folder whose changes are numbered
 * FAULTS_EXCEPT  folder of another machine's disk: recorded, never numbered
 * FAULTS_PAGE    file of one page that all processes share: the counter, and the call that was hit
 * FAULTS_AT      number of the call, from 1; without it no fault happens
 * FAULTS_READ    number of a reading call; these are counted separately
 * FAULTS_DO      kill, torn (kill after half of a write), or an error number
 * FAULTS_TRACE   file for the record
 *
 * The path of a descriptor is asked of the system each time, so it is right after dup, fork or rename.
 *
 * Some code makes system calls without the C library (rustix, and parts of the C library itself). A
 * seccomp filter turns those that change names into signals, whose handler calls the same functions.
 * Calls of this file carry a mark in an unused argument.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum { OUTSIDE, INSIDE, FOREIGN };

/* Operations of a trace; trace.rs has the same numbers. */
enum { OPEN = 1, WRITE, SYNC, RENAME, LINK, SYMLINK, UNLINK, RMDIR, MKDIR, TRUNCATE, CHMOD, OTHER, READ };

struct page {
    _Atomic uint64_t count;
    _Atomic uint64_t hit;
    _Atomic uint64_t reads;
    /* 1: this library is loaded; 2: the filter is installed too. */
    _Atomic uint64_t loaded;
    _Atomic uint32_t lock;
    char what[2048];
};

static struct page *page;
static const char *root, *except_;
static size_t root_len, except_len;
static uint64_t at, read_at;
static int error_, torn_, trace_ = -1;

#define REAL(result, name, ...)                                                                                              \
    static result (*real)(__VA_ARGS__);                                                                                      \
    if (!real) real = dlsym(RTLD_NEXT, name)

/* A marked call, which the filter ignores. */
#define MARK 0x5357454550L
#define RAW(number, a, b, c, d, e) syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), MARK)

static int install_filter(void);

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("FAULTS_PAGE"), *trace = getenv("FAULTS_TRACE"), *what = getenv("FAULTS_DO");
    const char *number = getenv("FAULTS_AT"), *read = getenv("FAULTS_READ");
    if (!file || !getenv("FAULTS_ROOT")) return;
    int fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *map = (void *)syscall(SYS_mmap, NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (map == MAP_FAILED) return;
    if (trace) trace_ = syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (number) at = strtoull(number, NULL, 10);
    if (read) read_at = strtoull(read, NULL, 10);
    if (what) {
        torn_ = strcmp(what, "torn") == 0;
        error_ = atoi(what);
    }
    except_ = getenv("FAULTS_EXCEPT");
    except_len = except_ ? strlen(except_) : 0;
    root = getenv("FAULTS_ROOT");
    root_len = strlen(root);
    page = map;
    atomic_store(&page->loaded, install_filter() ? 2 : 1);
}

static int below(const char *path, const char *folder, size_t length) {
    return length && strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int where_is(const char *path) {
    if (!below(path, root, root_len)) return OUTSIDE;
    return below(path, except_, except_len) ? FOREIGN : INSIDE;
}

/* The full path of a name: its resolved folder and its last part. */
static int find(int dir, const char *path, char *out) {
    if (!page || !path || !*path) return OUTSIDE;
    char whole[2 * PATH_MAX], base[PATH_MAX];
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, dir == AT_FDCWD ? "/proc/self/cwd" : link, base, sizeof base - 1);
        if (n < 0) return OUTSIDE;
        base[n] = 0;
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    size_t length = strlen(whole);
    while (length > 1 && whole[length - 1] == '/') whole[--length] = 0;
    char *slash = strrchr(whole, '/');
    if (!slash || !slash[1]) return OUTSIDE;
    *slash = 0;
    if (!realpath(*whole ? whole : "/", base)) snprintf(base, sizeof base, "%.*s", PATH_MAX - 1, whole);
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", base, slash + 1);
    return where_is(out);
}

/* The path of an open file or folder, and its inode. */
static int find_fd(int fd, char *out, uint64_t *inode) {
    if (!page) return OUTSIDE;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    if (n <= 0 || out[0] != '/') return OUTSIDE;
    out[n] = 0;
    int where = where_is(out);
    struct stat found;
    if (where == OUTSIDE || fstat(fd, &found) != 0) return OUTSIDE;
    if (inode) *inode = found.st_ino;
    return where;
}

static uint64_t inode_of(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

static uint64_t inode_at(const char *path) {
    struct stat found;
    return lstat(path, &found) == 0 ? found.st_ino : 0;
}

static void die(void) {
    /* The process group is the command with everything that it started. */
    kill(0, SIGKILL);
    for (;;) pause();
}

struct gate {
    int where, error, half;
    uint64_t number;
};

/* Before a call: counts it and decides on its fault. */
static struct gate enter(const char *name, int where, const char *path, int is_write) {
    struct gate gate = {where, 0, 0, 0};
    if (where == OUTSIDE) return gate;
    if (trace_ >= 0)
        while (atomic_exchange(&page->lock, 1)) sched_yield();
    if (where == INSIDE) {
        gate.number = atomic_fetch_add(&page->count, 1) + 1;
        if (at && gate.number == at) {
            snprintf(page->what, sizeof page->what, "%s %s", name, path + root_len);
            atomic_store(&page->hit, 1);
            if (error_) gate.error = error_;
            else if (torn_ && is_write) gate.half = 1;
            else die();
        }
    }
    return gate;
}

static void put(char **to, const void *bytes, size_t length) {
    memcpy(*to, bytes, length);
    *to += length;
}

/* After a call: records it and admits the next one. */
static void leave(struct gate gate, int done, uint8_t kind, const char *name, uint64_t inode, uint64_t value, const char *path,
                  const char *second, const void *data, uint64_t length) {
    if (gate.where == OUTSIDE || trace_ < 0) return;
    int saved = errno;
    if (done || gate.where == INSIDE) {
        size_t size = 64 + strlen(name) + strlen(path) + (second ? strlen(second) : 0) + length;
        char *buffer = malloc(size), *to = buffer + 4;
        uint8_t foreign = gate.where == FOREIGN, failed = !done;
        put(&to, &kind, 1);
        put(&to, &foreign, 1);
        put(&to, &failed, 1);
        put(&to, &gate.number, 8);
        put(&to, &inode, 8);
        put(&to, &value, 8);
        const char *texts[] = {name, path, second ? second : ""};
        for (int n = 0; n < 3; n++) {
            uint16_t text = strlen(texts[n]);
            put(&to, &text, 2);
            put(&to, texts[n], text);
        }
        if (length) put(&to, data, length);
        uint32_t all = to - buffer - 4;
        memcpy(buffer, &all, 4);
        ssize_t written = syscall(SYS_write, trace_, buffer, (size_t)all + 4);
        (void)written;
        free(buffer);
    }
    atomic_store(&page->lock, 0);
    errno = saved;
}

#define REFUSED(gate, kind, name, path)                                                                                      \
    if ((gate).error) {                                                                                                      \
        leave(gate, 0, kind, name, 0, 0, path, NULL, NULL, 0);                                                               \
        errno = (gate).error;                                                                                                \
        return -1;                                                                                                           \
    }

/* Returns the error of a reading call. */
static int reads(const char *name, const char *path) {
    if (trace_ < 0 && !read_at) return 0;
    uint64_t number = atomic_fetch_add(&page->reads, 1) + 1;
    if (trace_ >= 0) {
        struct gate gate = {INSIDE, 0, 0, 0};
        while (atomic_exchange(&page->lock, 1)) sched_yield();
        leave(gate, 1, READ, name, 0, number, path, NULL, NULL, 0);
    }
    if (number != read_at) return 0;
    snprintf(page->what, sizeof page->what, "%s %s", name, path + root_len);
    atomic_store(&page->hit, 1);
    return error_;
}

/* Opening. Only creation and truncation are changes. */

static int do_open(int dir, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    int changes = (flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE;
    int where = changes || read_at || trace_ >= 0 ? find(dir, path, full) : OUTSIDE;
    if (where == OUTSIDE) return RAW(SYS_openat, dir, path, flags, mode, 0);
    if (!changes) {
        int error = where == INSIDE ? reads("open for reading", full) : 0;
        if (!error) return RAW(SYS_openat, dir, path, flags, mode, 0);
        errno = error;
        return -1;
    }
    struct gate gate = enter("open", where, full, 0);
    REFUSED(gate, OPEN, "open", full);
    int fd = RAW(SYS_openat, dir, path, flags, mode, 0);
    leave(gate, fd >= 0, OPEN, "open", fd >= 0 ? inode_of(fd) : 0, flags & O_TRUNC ? 1 : 0, full, NULL, NULL, 0);
    return fd;
}

#define MODE(flags)                                                                                                          \
    mode_t mode = 0;                                                                                                         \
    if (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list more;                                                                                                        \
        va_start(more, flags);                                                                                               \
        mode = va_arg(more, int);                                                                                            \
        va_end(more);                                                                                                        \
    }

int open(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE(flags) return do_open(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE(flags) return do_open(dir, path, flags, mode); }
int creat(const char *path, mode_t mode) { return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int __open_2(const char *path, int flags) { return do_open(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return do_open(AT_FDCWD, path, flags, 0); }
int __openat_2(int dir, const char *path, int flags) { return do_open(dir, path, flags, 0); }
int __openat64_2(int dir, const char *path, int flags) { return do_open(dir, path, flags, 0); }

/* Writing. */

static uint64_t position(int fd) {
    if (fcntl(fd, F_GETFL) & O_APPEND) {
        struct stat found;
        return fstat(fd, &found) == 0 ? found.st_size : 0;
    }
    off_t now = lseek(fd, 0, SEEK_CUR);
    return now < 0 ? 0 : now;
}

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    char full[PATH_MAX];
    uint64_t inode = 0, from = 0;
    int where = find_fd(fd, full, &inode);
    if (where == OUTSIDE) return real(fd, data, length);
    struct gate gate = enter("write", where, full, length > 1);
    REFUSED(gate, WRITE, "write", full);
    if (trace_ >= 0) from = position(fd);
    ssize_t done = real(fd, data, gate.half ? length / 2 : length);
    if (gate.half) die();
    leave(gate, done >= 0, WRITE, "write", inode, from, full, NULL, data, done > 0 ? done : 0);
    return done;
}

static ssize_t do_pwrite(int fd, const void *data, size_t length, off64_t from) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    char full[PATH_MAX];
    uint64_t inode = 0;
    int where = find_fd(fd, full, &inode);
    if (where == OUTSIDE) return real(fd, data, length, from);
    struct gate gate = enter("pwrite", where, full, length > 1);
    REFUSED(gate, WRITE, "pwrite", full);
    ssize_t done = real(fd, data, gate.half ? length / 2 : length, from);
    if (gate.half) die();
    leave(gate, done >= 0, WRITE, "pwrite", inode, from, full, NULL, data, done > 0 ? done : 0);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t from) { return do_pwrite(fd, data, length, from); }
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t from) { return do_pwrite(fd, data, length, from); }

/* Reads back the data of a call without a buffer, for the trace. */
static void leave_region(struct gate gate, const char *name, int fd, const char *full, uint64_t inode, uint64_t from, ssize_t done) {
    char link[64], *data = NULL;
    ssize_t have = 0;
    if (trace_ >= 0 && done > 0 && (data = malloc(done))) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int again = syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
        if (again >= 0) {
            have = syscall(SYS_pread64, again, data, done, from);
            syscall(SYS_close, again);
        }
    }
    leave(gate, done >= 0, WRITE, name, inode, from, full, NULL, data, have > 0 ? have : 0);
    free(data);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    char full[PATH_MAX];
    uint64_t inode = 0;
    int where = find_fd(fd, full, &inode);
    if (where == OUTSIDE) return real(fd, parts, count);
    struct gate gate = enter("writev", where, full, count > 1);
    REFUSED(gate, WRITE, "writev", full);
    uint64_t from = trace_ >= 0 ? position(fd) : 0;
    ssize_t done = real(fd, parts, gate.half ? count / 2 : count);
    if (gate.half) die();
    leave_region(gate, "writev", fd, full, inode, from, done);
    return done;
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t length, unsigned flags) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    char full[PATH_MAX];
    uint64_t inode = 0;
    int where = find_fd(out, full, &inode);
    if (where == OUTSIDE) return real(in, in_at, out, out_at, length, flags);
    struct gate gate = enter("copy_file_range", where, full, length > 1);
    REFUSED(gate, WRITE, "copy_file_range", full);
    uint64_t from = out_at ? (uint64_t)*out_at : position(out);
    ssize_t done = real(in, in_at, out, out_at, gate.half && length < (1u << 30) ? length / 2 : length, flags);
    if (gate.half) die();
    leave_region(gate, "copy_file_range", out, full, inode, from, done);
    return done;
}

static ssize_t do_sendfile(int out, int in, off64_t *in_at, size_t length) {
    REAL(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    char full[PATH_MAX];
    uint64_t inode = 0;
    int where = find_fd(out, full, &inode);
    if (where == OUTSIDE) return real(out, in, in_at, length);
    struct gate gate = enter("sendfile", where, full, length > 1);
    REFUSED(gate, WRITE, "sendfile", full);
    uint64_t from = position(out);
    ssize_t done = real(out, in, in_at, length);
    if (gate.half) die();
    leave_region(gate, "sendfile", out, full, inode, from, done);
    return done;
}

ssize_t sendfile(int out, int in, off_t *in_at, size_t length) { return do_sendfile(out, in, (off64_t *)in_at, length); }
ssize_t sendfile64(int out, int in, off64_t *in_at, size_t length) { return do_sendfile(out, in, in_at, length); }

/* Syncing, and other calls on an open file. */

#define ON_FD(kind, name, value, call)                                                                                       \
    char full[PATH_MAX];                                                                                                     \
    uint64_t inode = 0;                                                                                                      \
    int where = find_fd(fd, full, &inode);                                                                                   \
    if (where == OUTSIDE) return call;                                                                                       \
    struct gate gate = enter(name, where, full, 0);                                                                          \
    REFUSED(gate, kind, name, full);                                                                                         \
    int done = call;                                                                                                         \
    leave(gate, done == 0, kind, name, inode, value, full, NULL, NULL, 0);                                                   \
    return done;

int fsync(int fd) {
    ON_FD(SYNC, "fsync", 0, RAW(SYS_fsync, fd, 0, 0, 0, 0))
}
int fdatasync(int fd) {
    ON_FD(SYNC, "fdatasync", 0, RAW(SYS_fdatasync, fd, 0, 0, 0, 0))
}
int syncfs(int fd) {
    ON_FD(SYNC, "syncfs", 1, RAW(SYS_syncfs, fd, 0, 0, 0, 0))
}
int ftruncate(int fd, off_t length) {
    ON_FD(TRUNCATE, "ftruncate", length, RAW(SYS_ftruncate, fd, length, 0, 0, 0))
}
int ftruncate64(int fd, off64_t length) {
    ON_FD(TRUNCATE, "ftruncate", length, RAW(SYS_ftruncate, fd, length, 0, 0, 0))
}
int fallocate(int fd, int mode, off_t from, off_t length) {
    ON_FD(OTHER, "fallocate", from + length, RAW(SYS_fallocate, fd, mode, from, length, 0))
}
int fallocate64(int fd, int mode, off64_t from, off64_t length) {
    ON_FD(OTHER, "fallocate", from + length, RAW(SYS_fallocate, fd, mode, from, length, 0))
}
int fchmod(int fd, mode_t mode) {
    ON_FD(CHMOD, "fchmod", mode, RAW(SYS_fchmod, fd, mode, 0, 0, 0))
}
int fchown(int fd, uid_t user, gid_t group) {
    ON_FD(OTHER, "fchown", 0, RAW(SYS_fchown, fd, user, group, 0, 0))
}
int futimens(int fd, const struct timespec times[2]) {
    ON_FD(OTHER, "futimens", 0, RAW(SYS_utimensat, fd, 0, times, 0, 0))
}

/* Calls on one name. */

#define ON_NAME(kind, name, dir, path, value, call)                                                                          \
    char full[PATH_MAX];                                                                                                     \
    int where = find(dir, path, full);                                                                                       \
    if (where == OUTSIDE) return call;                                                                                       \
    struct gate gate = enter(name, where, full, 0);                                                                          \
    REFUSED(gate, kind, name, full);                                                                                         \
    int done = call;                                                                                                         \
    leave(gate, done == 0, kind, name, done == 0 && trace_ >= 0 ? inode_at(full) : 0, value, full, NULL, NULL, 0);          \
    return done;

int unlink(const char *path) {
    ON_NAME(UNLINK, "unlink", AT_FDCWD, path, 0, RAW(SYS_unlinkat, AT_FDCWD, path, 0, 0, 0))
}
int unlinkat(int dir, const char *path, int flags) {
    int folder = flags & AT_REMOVEDIR;
    ON_NAME(folder ? RMDIR : UNLINK, folder ? "rmdir" : "unlink", dir, path, 0, RAW(SYS_unlinkat, dir, path, flags, 0, 0))
}
int remove(const char *path) {
    struct stat found;
    if (lstat(path, &found) != 0) return -1;
    return unlinkat(AT_FDCWD, path, S_ISDIR(found.st_mode) ? AT_REMOVEDIR : 0);
}
int rmdir(const char *path) {
    ON_NAME(RMDIR, "rmdir", AT_FDCWD, path, 0, RAW(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR, 0, 0))
}
int mkdir(const char *path, mode_t mode) {
    ON_NAME(MKDIR, "mkdir", AT_FDCWD, path, mode, RAW(SYS_mkdirat, AT_FDCWD, path, mode, 0, 0))
}
int mkdirat(int dir, const char *path, mode_t mode) {
    ON_NAME(MKDIR, "mkdir", dir, path, mode, RAW(SYS_mkdirat, dir, path, mode, 0, 0))
}
int truncate(const char *path, off_t length) {
    ON_NAME(TRUNCATE, "truncate", AT_FDCWD, path, length, RAW(SYS_truncate, path, length, 0, 0, 0))
}
int truncate64(const char *path, off64_t length) {
    ON_NAME(TRUNCATE, "truncate", AT_FDCWD, path, length, RAW(SYS_truncate, path, length, 0, 0, 0))
}
int chmod(const char *path, mode_t mode) {
    ON_NAME(CHMOD, "chmod", AT_FDCWD, path, mode, RAW(SYS_fchmodat, AT_FDCWD, path, mode, 0, 0))
}
int fchmodat(int dir, const char *path, mode_t mode, int flags) {
    (void)flags;
    ON_NAME(CHMOD, "chmod", dir, path, mode, RAW(SYS_fchmodat, dir, path, mode, 0, 0))
}
int chown(const char *path, uid_t user, gid_t group) {
    ON_NAME(OTHER, "chown", AT_FDCWD, path, 0, RAW(SYS_fchownat, AT_FDCWD, path, user, group, 0))
}
int lchown(const char *path, uid_t user, gid_t group) {
    ON_NAME(OTHER, "lchown", AT_FDCWD, path, 0, RAW(SYS_fchownat, AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW))
}
int fchownat(int dir, const char *path, uid_t user, gid_t group, int flags) {
    ON_NAME(OTHER, "chown", dir, path, 0, RAW(SYS_fchownat, dir, path, user, group, flags))
}
int utimensat(int dir, const char *path, const struct timespec times[2], int flags) {
    ON_NAME(OTHER, "utimensat", dir, path, 0, RAW(SYS_utimensat, dir, path, times, flags, 0))
}

/* Calls on two names: located by the first one below the folder. */

#define ON_TWO(kind, name, from_dir, from, to_dir, to, value, call)                                                          \
    char full[PATH_MAX] = "", second[PATH_MAX] = "";                                                                         \
    int one = find(from_dir, from, full), two = find(to_dir, to, second);                                                    \
    int where = one == OUTSIDE ? two : one;                                                                                  \
    if (where == OUTSIDE) return call;                                                                                       \
    struct gate gate = enter(name, where, *second ? second : full, 0);                                                       \
    REFUSED(gate, kind, name, second);                                                                                       \
    int done = call;                                                                                                         \
    leave(gate, done == 0, kind, name, 0, value, full, second, NULL, 0);                                                     \
    return done;

int rename(const char *from, const char *to) {
    ON_TWO(RENAME, "rename", AT_FDCWD, from, AT_FDCWD, to, 0, RAW(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0))
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    ON_TWO(RENAME, "rename", from_dir, from, to_dir, to, 0, RAW(SYS_renameat2, from_dir, from, to_dir, to, 0))
}
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    ON_TWO(RENAME, "rename", from_dir, from, to_dir, to, flags, RAW(SYS_renameat2, from_dir, from, to_dir, to, flags))
}
int link(const char *from, const char *to) {
    ON_TWO(LINK, "link", AT_FDCWD, from, AT_FDCWD, to, 0, RAW(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0))
}
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    ON_TWO(LINK, "link", from_dir, from, to_dir, to, 0, RAW(SYS_linkat, from_dir, from, to_dir, to, flags))
}
int symlink(const char *target, const char *path) {
    ON_NAME(SYMLINK, "symlink", AT_FDCWD, path, 0, RAW(SYS_symlinkat, target, AT_FDCWD, path, 0, 0))
}
int symlinkat(const char *target, int dir, const char *path) {
    ON_NAME(SYMLINK, "symlink", dir, path, 0, RAW(SYS_symlinkat, target, dir, path, 0, 0))
}

/* Reading. */

#define READING(name, fd, failed)                                                                                            \
    char full[PATH_MAX];                                                                                                     \
    int error = (trace_ >= 0 || read_at) && find_fd(fd, full, NULL) == INSIDE ? reads(name, full) : 0;                       \
    if (error) {                                                                                                             \
        errno = error;                                                                                                       \
        return failed;                                                                                                       \
    }

ssize_t read(int fd, void *buffer, size_t length) {
    REAL(ssize_t, "read", int, void *, size_t);
    READING("read", fd, -1)
    return real(fd, buffer, length);
}
ssize_t pread64(int fd, void *buffer, size_t length, off64_t from) {
    REAL(ssize_t, "pread64", int, void *, size_t, off64_t);
    READING("read", fd, -1)
    return real(fd, buffer, length, from);
}
void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t from) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    if (fd < 0) return real(address, length, protection, flags, fd, from);
    READING("mmap", fd, MAP_FAILED)
    return real(address, length, protection, flags, fd, from);
}
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t from) {
    return mmap(address, length, protection, flags, fd, from);
}
DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    char full[PATH_MAX];
    int error = (trace_ >= 0 || read_at) && find(AT_FDCWD, path, full) == INSIDE ? reads("opendir", full) : 0;
    if (!error) return real(path);
    errno = error;
    return NULL;
}
struct dirent64 *readdir64(DIR *folder) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    READING("readdir", dirfd(folder), NULL)
    return real(folder);
}

/* Calls without the C library. */

static long handle(long number, long a, long b, long c, long d, long e) {
    switch (number) {
    case SYS_openat: return do_open(a, (const char *)b, c, d);
    case SYS_fsync: return fsync(a);
    case SYS_fdatasync: return fdatasync(a);
    case SYS_ftruncate: return ftruncate(a, b);
    case SYS_fchmod: return fchmod(a, b);
    case SYS_fchmodat: return fchmodat(a, (const char *)b, c, 0);
    case SYS_mkdirat: return mkdirat(a, (const char *)b, c);
    case SYS_unlinkat: return unlinkat(a, (const char *)b, c);
    case SYS_linkat: return linkat(a, (const char *)b, c, (const char *)d, e);
    case SYS_symlinkat: return symlinkat((const char *)a, b, (const char *)c);
    case SYS_renameat2: return renameat2(a, (const char *)b, c, (const char *)d, e);
#ifdef SYS_renameat
    case SYS_renameat: return renameat(a, (const char *)b, c, (const char *)d);
#endif
#ifdef SYS_rename
    case SYS_rename: return rename((const char *)a, (const char *)b);
    case SYS_link: return link((const char *)a, (const char *)b);
    case SYS_unlink: return unlink((const char *)a);
    case SYS_rmdir: return rmdir((const char *)a);
    case SYS_mkdir: return mkdir((const char *)a, b);
    case SYS_chmod: return chmod((const char *)a, b);
#endif
    }
    return RAW(number, a, b, c, d, e);
}

static void on_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int saved = errno;
    mcontext_t *at_call = &((ucontext_t *)context)->uc_mcontext;
#if defined __x86_64__
    greg_t *r = at_call->gregs;
    long done = handle(info->si_syscall, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8]);
    r[REG_RAX] = done < 0 ? -errno : done;
#elif defined __aarch64__
    unsigned long long *r = at_call->regs;
    long done = handle(info->si_syscall, r[0], r[1], r[2], r[3], r[4]);
    r[0] = done < 0 ? -errno : done;
#endif
    errno = saved;
}

#define FIELD(member) (__u32) offsetof(struct seccomp_data, member)
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(member))
#define PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int install_filter(void) {
#if defined __x86_64__ || defined __aarch64__
    static const int caught[] = {
        SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fchmod, SYS_fchmodat, SYS_mkdirat, SYS_unlinkat, SYS_linkat, SYS_symlinkat,
        SYS_renameat2,
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_rename
        SYS_rename, SYS_link, SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_chmod,
#endif
    };
    enum { COUNT = sizeof caught / sizeof *caught };
    struct sock_filter code[COUNT + 9];
    int n = 0;
    code[n++] = (struct sock_filter)LOAD(nr);
    for (int at = 0; at < COUNT; at++) {
        /* Jumps to the check of the mark, after the rest of the list and the check of openat. */
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, caught[at], COUNT - at - 1 + 4, 0);
    }
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0);
    code[n++] = (struct sock_filter)PASS;
    code[n++] = (struct sock_filter)LOAD(args[2]);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 2);
    code[n++] = (struct sock_filter)LOAD(args[5]);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)MARK, 0, 1);
    code[n++] = (struct sock_filter)PASS;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {n, code};
    struct sigaction action = {0};
    action.sa_sigaction = on_call;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
    return 0;
#endif
}
