/* A power cut: `cut PID DIRECTORY [PID DIRECTORY ...]`. Kills the processes, then shuts down the ext4 file systems
 * of the directories without writing anything more to their devices.
 *
 * What the devices hold afterwards is what they held at one instant each: nothing is copied, so no block is newer
 * than another one allows. Everything that was acknowledged before the process died was on the device before the
 * shutdown. Two things that a real cut does are missing: writes that the device has taken but not flushed all
 * survive, and requests that are on their way are finished and not torn. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* fs/ext4/ext4.h; the same number and flags as XFS and F2FS have. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define WITHOUT_FLUSHING_THE_LOG 2u

enum { PAIRS_MAX = 16 };

int main(int count, char **arguments) {
    int pairs = (count - 1) / 2;
    int directories[PAIRS_MAX];
    if (pairs < 1 || pairs > PAIRS_MAX || count != 1 + 2 * pairs) {
        fprintf(stderr, "usage: %s PID DIRECTORY [PID DIRECTORY ...], %d pairs at most\n", arguments[0], PAIRS_MAX);
        return 2;
    }
    /* Everything that takes time comes first. */
    for (int pair = 0; pair < pairs; pair++) {
        const char *path = arguments[2 + 2 * pair];
        directories[pair] = open(path, O_RDONLY | O_DIRECTORY);
        if (directories[pair] < 0) {
            fprintf(stderr, "cannot open %s: %s\n", path, strerror(errno));
            return 1;
        }
    }
    for (int pair = 0; pair < pairs; pair++) {
        pid_t pid = (pid_t)atol(arguments[1 + 2 * pair]);
        /* A process that has ended already needs no end. 0 stands for a directory that nobody uses. */
        if (pid > 0 && kill(pid, SIGKILL) != 0 && errno != ESRCH) {
            fprintf(stderr, "cannot kill %d: %s\n", (int)pid, strerror(errno));
            return 1;
        }
    }
    for (int pair = 0; pair < pairs; pair++) {
        uint32_t flags = WITHOUT_FLUSHING_THE_LOG;
        if (ioctl(directories[pair], SHUTDOWN, &flags) != 0) {
            fprintf(stderr, "cannot shut down %s: %s\n", arguments[2 + 2 * pair], strerror(errno));
            return 1;
        }
    }
    return 0;
}
