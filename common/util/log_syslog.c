/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The sink that writes to the node's syslog.
 *
 * Not by syslog(3): its name and facility are the whole process's, and libpmix sets them for the
 * messages that users log; and it waits for a syslog that does not read.
 */
#include "common/util/log_syslog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static int connect_to(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int log_syslog_open(struct log_syslog *syslog, const char *path, const char *name, struct err *err)
{
    *syslog = (struct log_syslog){path, name, connect_to(path)};
    return syslog->fd < 0 ? err_set(err, "cannot connect to %s: %s", path, strerror(errno)) : 0;
}

/* A syslog that was started anew has another socket. It takes the place of the old one under its
 * number, as other threads may be sending. */
static int send_line(struct log_syslog *syslog, const char *line, size_t len)
{
    int fresh, rc;
    if (send(syslog->fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 0;
    if (errno != ECONNREFUSED && errno != ENOTCONN && errno != ECONNRESET)
        return -1;
    fresh = connect_to(syslog->path);
    if (fresh < 0)
        return -1;
    rc = dup3(fresh, syslog->fd, O_CLOEXEC) < 0 ||
                 send(syslog->fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0
             ? -1
             : 0;
    close(fresh);
    return rc;
}

void log_syslog(void *arg, enum log_level level, const char *text)
{
    struct log_syslog *syslog = arg;
    char line[1200], when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm))
        strftime(when, sizeof(when), "%b %e %T", &tm);
    int len = snprintf(line, sizeof(line), "<%d>%s %s[%d]: %s", LOG_DAEMON | (int)level, when,
                       syslog->name, (int)getpid(), text);
    if (len >= (int)sizeof(line))
        len = (int)sizeof(line) - 1;
    if (send_line(syslog, line, (size_t)len) < 0 || level <= LOG_LEVEL_ERROR)
        log_stderr(NULL, level, text);
}

void log_syslog_close(struct log_syslog *syslog)
{
    if (syslog->fd >= 0)
        close(syslog->fd);
    syslog->fd = -1;
}
