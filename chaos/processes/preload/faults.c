/* Faults of storage and clock for one process, by LD_PRELOAD. chaos/processes/preload/README.md tells how it is used.
 *
 * The process is steered by a file that TRIPOD_FAULT_CONTROL names and that is mapped shared, so that a change
 * counts from the next call on and costs the process nothing else. Without the variable, or when the file cannot
 * be mapped, everything is passed through.
 *
 * Monotonic clocks are never touched: time that runs backwards there is a fault that no machine has. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "unflushed.h"

enum { CONTROL_BYTES = 4096 };

/* The words of the control file, in this order. */
struct control {
    /* Set from outside. */
    _Atomic uint64_t sync_delay_us; /* how long every flush takes longer */
    _Atomic uint64_t sync_stalled;  /* not 0: flushes wait until it is 0 again */
    _Atomic uint64_t sync_error;    /* errno of flushes once sync_passes is used up; 0: none */
    _Atomic uint64_t sync_passes;   /* flushes that still succeed while sync_error is set */
    _Atomic uint64_t sync_swallowed;/* not 0: flushes report success and do nothing */
    _Atomic uint64_t write_error;   /* errno of writes to regular files; 0: none; ENOSPC: of writes that need space */
    _Atomic int64_t wall_shift_ms;  /* added to the wall clock */
    /* Counted here. */
    _Atomic uint64_t attached;      /* processes that mapped the file */
    _Atomic uint64_t syncs;         /* flushes asked for */
    _Atomic uint64_t syncs_failed;  /* of these, failed by us */
    _Atomic uint64_t syncs_waiting; /* flushes that wait now, for a delay or a stall */
    _Atomic uint64_t writes;        /* writes to regular files asked for */
    _Atomic uint64_t writes_failed; /* of these, failed by us */
    _Atomic uint64_t wall_reads;    /* reads of the wall clock */
};

static struct control *control;

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_sync_file_range)(int, off64_t, off64_t, unsigned int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void attach(void) {
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_sync_file_range = dlsym(RTLD_NEXT, "sync_file_range");
    real_write = dlsym(RTLD_NEXT, "write");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_pwrite64 = dlsym(RTLD_NEXT, "pwrite64");
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    unflushed_open();
    const char *path = getenv("TRIPOD_FAULT_CONTROL");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *map = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return;
    control = map;
    atomic_fetch_add(&control->attached, 1);
}

static void sleep_us(uint64_t us) {
    struct timespec left = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Delays and stalls. Returns 1 if the real call is to be made, else the caller returns *result. */
static int before_sync(int *result) {
    if (control == NULL)
        return 1;
    atomic_fetch_add(&control->syncs, 1);
    atomic_fetch_add(&control->syncs_waiting, 1);
    uint64_t delay_us = atomic_load(&control->sync_delay_us);
    if (delay_us > 0)
        sleep_us(delay_us);
    while (atomic_load(&control->sync_stalled) != 0)
        sleep_us(1000);
    atomic_fetch_sub(&control->syncs_waiting, 1);
    uint64_t error = atomic_load(&control->sync_error);
    if (error != 0) {
        uint64_t passes = atomic_load(&control->sync_passes);
        while (passes > 0 && !atomic_compare_exchange_weak(&control->sync_passes, &passes, passes - 1))
            ;
        if (passes == 0) {
            atomic_fetch_add(&control->syncs_failed, 1);
            errno = (int)error;
            *result = -1;
            return 0;
        }
    }
    if (atomic_load(&control->sync_swallowed) != 0) {
        *result = 0;
        return 0;
    }
    return 1;
}

/* A flush that may be made, and what it reached. */
static int flush(int fd, int (*real)(int)) {
    uint64_t reached = unflushed_will_flush();
    int result = real(fd);
    if (result == 0)
        unflushed_flushed(fd, reached);
    return result;
}

int fsync(int fd) {
    int result;
    return before_sync(&result) ? flush(fd, real_fsync) : result;
}

int fdatasync(int fd) {
    int result;
    return before_sync(&result) ? flush(fd, real_fdatasync) : result;
}

/* Makes neither a file's size durable nor what the device has not flushed: nothing that a cut could not take. */

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned int flags) {
    int result;
    return before_sync(&result) ? real_sync_file_range(fd, offset, bytes, flags) : result;
}

/* Whether a write is to fail; the offset -1 stands for the file's own. Sockets and pipes are the network's faults;
 * 1 and 2 are the log. A full disk still takes what replaces bytes that are there. */
static int write_fails(int fd, uint64_t bytes, int64_t offset) {
    if (control == NULL || fd <= 2)
        return 0;
    int before = errno;
    struct stat64 about;
    int regular = fstat64(fd, &about) == 0 && S_ISREG(about.st_mode);
    errno = before;
    if (!regular)
        return 0;
    atomic_fetch_add(&control->writes, 1);
    uint64_t error = atomic_load(&control->write_error);
    if (error == 0)
        return 0;
    if (error == ENOSPC) {
        if (offset < 0)
            offset = fcntl(fd, F_GETFL) & O_APPEND ? about.st_size : lseek64(fd, 0, SEEK_CUR);
        if (offset + (int64_t)bytes <= about.st_size)
            return 0;
    }
    atomic_fetch_add(&control->writes_failed, 1);
    errno = (int)error;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (write_fails(fd, count, -1))
        return -1;
    int logged = unflushed_will_write(fd, count, -1);
    ssize_t written = real_write(fd, bytes, count);
    if (logged)
        unflushed_wrote();
    return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    uint64_t bytes = 0;
    for (int part = 0; part < count; part++)
        bytes += parts[part].iov_len;
    if (write_fails(fd, bytes, -1))
        return -1;
    int logged = unflushed_will_write(fd, bytes, -1);
    ssize_t written = real_writev(fd, parts, count);
    if (logged)
        unflushed_wrote();
    return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    if (write_fails(fd, count, offset))
        return -1;
    int logged = unflushed_will_write(fd, count, offset);
    ssize_t written = real_pwrite64(fd, bytes, count, offset);
    if (logged)
        unflushed_wrote();
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    return pwrite64(fd, bytes, count, offset);
}

static void shift(struct timespec *now) {
    atomic_fetch_add(&control->wall_reads, 1);
    int64_t shift_ms = atomic_load(&control->wall_shift_ms);
    int64_t ns = now->tv_nsec + (shift_ms % 1000) * 1000000;
    now->tv_sec += shift_ms / 1000;
    if (ns < 0) {
        ns += 1000000000;
        now->tv_sec -= 1;
    } else if (ns >= 1000000000) {
        ns -= 1000000000;
        now->tv_sec += 1;
    }
    now->tv_nsec = ns;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    /* Somebody may ask for the time before our constructor ran. */
    if (real_clock_gettime == NULL)
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(clock, now);
    if (result == 0 && control != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(now);
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
