/* The log of writes that may still be lost. unflushed.c tells more. */

#ifndef TRIPOD_UNFLUSHED_H
#define TRIPOD_UNFLUSHED_H

#include <stdint.h>
#include <sys/types.h>

/* Opens the log of this process's life; without TRIPOD_UNFLUSHED_LOG nothing is logged. */
void unflushed_open(void);

/* Around every write: 1 if it was logged, and unflushed_wrote must follow. The offset -1 stands for the file's own. */
int unflushed_will_write(int fd, uint64_t bytes, int64_t offset);
void unflushed_wrote(void);

/* Around every flush that makes a whole file durable: what to hand to unflushed_flushed if it succeeded. */
uint64_t unflushed_will_flush(void);
void unflushed_flushed(int fd, uint64_t reached);

#endif
