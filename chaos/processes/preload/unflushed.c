/* A log of what a power cut could take back: for every write to a file of the data directory the bytes that it
 * replaced, and for every flush how far it reached. When the process has been killed, the writes behind the last
 * flush of their file are known, and any of their sectors can be put back as it was
 * (chaos/processes/src/fault/storage/unflushed.rs).
 *
 * Only contents are logged. Names and sizes stay as the process left them. */

#define _GNU_SOURCE
#include "unflushed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, FLUSH = 2, LIFE = 3 };

/* A record; behind it follow the path and the replaced bytes, which may be fewer than were written. */
struct record {
    uint64_t kind;
    uint64_t number; /* of the write; of a flush: of the last write that it reached */
    uint64_t device;
    uint64_t inode;
    uint64_t offset;
    uint64_t bytes;
    uint64_t path_bytes;
    uint64_t replaced_bytes;
};

static int log_fd = -1;
static char directory[PATH_MAX];
static size_t directory_bytes;
static uint64_t last_number;
/* Held from the log's line to the end of the write, so that a flush knows which writes were done before it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Straight to the kernel: the library's own write is ours. A log that cannot be written makes the run void. */
static void append(const struct record *record, const char *path, const void *replaced) {
    struct iovec parts[3] = {
        {.iov_base = (void *)record, .iov_len = sizeof *record},
        {.iov_base = (void *)path, .iov_len = record->path_bytes},
        {.iov_base = (void *)replaced, .iov_len = record->replaced_bytes},
    };
    ssize_t whole = (ssize_t)(sizeof *record + record->path_bytes + record->replaced_bytes);
    if (syscall(SYS_writev, log_fd, parts, 3) != whole)
        abort();
}

void unflushed_open(void) {
    const char *log = getenv("TRIPOD_UNFLUSHED_LOG");
    const char *data = getenv("TRIPOD_UNFLUSHED_DIRECTORY");
    if (log == NULL || data == NULL || realpath(data, directory) == NULL)
        return;
    directory_bytes = strlen(directory);
    log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* Numbers begin again; what an earlier life wrote may be lost until its file is flushed, by whomever. */
    struct record life = {.kind = LIFE};
    if (log_fd >= 0)
        append(&life, directory, NULL);
}

/* The path of a regular file of the data directory; 0 bytes for anything else. */
static size_t path_of(int fd, struct stat64 *about, char *path) {
    if (log_fd < 0 || fd <= 2 || fstat64(fd, about) != 0 || !S_ISREG(about->st_mode))
        return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, PATH_MAX - 1);
    path[bytes < 0 ? 0 : bytes] = '\0';
    int inside = bytes > (ssize_t)directory_bytes && memcmp(path, directory, directory_bytes) == 0;
    return inside && path[directory_bytes] == '/' ? (size_t)bytes : 0;
}

int unflushed_will_write(int fd, uint64_t bytes, int64_t offset) {
    struct stat64 about;
    char path[PATH_MAX];
    int before = errno;
    size_t path_bytes = path_of(fd, &about, path);
    errno = before;
    if (path_bytes == 0)
        return 0;
    if (offset < 0)
        offset = fcntl(fd, F_GETFL) & O_APPEND ? about.st_size : lseek64(fd, 0, SEEK_CUR);
    char *replaced = malloc(bytes == 0 ? 1 : bytes);
    /* The process's own descriptor may be for writing only. */
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (replaced == NULL || (reader < 0 && errno != ENOENT))
        abort();
    /* A file that was unlinked cannot come back. */
    if (reader < 0) {
        free(replaced);
        errno = before;
        return 0;
    }
    pthread_mutex_lock(&lock);
    ssize_t there = pread64(reader, replaced, bytes, offset);
    struct record record = {
        .kind = WRITE,
        .number = ++last_number,
        .device = about.st_dev,
        .inode = about.st_ino,
        .offset = (uint64_t)offset,
        .bytes = bytes,
        .path_bytes = path_bytes,
        .replaced_bytes = there > 0 ? (uint64_t)there : 0,
    };
    append(&record, path, replaced);
    close(reader);
    free(replaced);
    errno = before;
    return 1;
}

void unflushed_wrote(void) {
    pthread_mutex_unlock(&lock);
}

uint64_t unflushed_will_flush(void) {
    pthread_mutex_lock(&lock);
    uint64_t reached = last_number;
    pthread_mutex_unlock(&lock);
    return reached;
}

void unflushed_flushed(int fd, uint64_t reached) {
    struct stat64 about;
    char path[PATH_MAX];
    int before = errno;
    if (path_of(fd, &about, path) > 0) {
        struct record record = {
            .kind = FLUSH, .number = reached, .device = about.st_dev, .inode = about.st_ino};
        append(&record, path, NULL);
    }
    errno = before;
}
