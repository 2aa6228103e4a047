/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Walks the directories in which servers have their sockets, proves whose each one is, connects to
 * the latest, and reads its answer within a deadline. Without a step it lists all that it finds.
 */
#include "common/status/find.h"

#include "common/server/status/status.h"
#include "common/util/clock.h"
#include "common/util/local.h"
#include "common/util/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SERVER_PROGRAM "muster-server"

enum { RANDOM_DIGITS = 8 /* at the end of a directory's name: see boot.h */ };

/* What was seen on the way. */
struct seen {
    int live;       /* connected to the server; -1: none */
    uid_t owner;    /* of that one */
    struct stat at; /* its socket, which was made when the server was started */
    unsigned runs;  /* how many servers of that owner */
    bool ambiguous; /* servers of several users answer to the name */
    bool foreign;   /* a directory of another user's */
    uid_t stranger; /* its owner */
    bool dead;      /* one of ours in which no server listens */
    int error;      /* errno of what failed otherwise; 0: nothing did */
    uid_t other;    /* the second owner when it is ambiguous */
};

bool find_is_step(const char *step)
{
    size_t len = strlen(step);
    return len > 0 && len <= FIND_STEP_MAX && step[0] != '.' &&
           strspn(step, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._+-") ==
               len;
}

/* @return whether it is the directory of a step, "muster.4711.0.0123abcd", whose name is copied */
static bool step_of(const char *directory, char step[static FIND_STEP_MAX + 1])
{
    const char *from = directory + strlen("muster."), *end = strrchr(directory, '.');
    if (strncmp(directory, "muster.", strlen("muster.")) != 0 || end <= from ||
        end - from > FIND_STEP_MAX || strlen(end + 1) != RANDOM_DIGITS ||
        strspn(end + 1, "0123456789abcdef") != RANDOM_DIGITS)
        return false;
    snprintf(step, FIND_STEP_MAX + 1, "%.*s", (int)(end - from), from);
    return find_is_step(step);
}

/* Any user may have a directory of such a name, and a process of his that answers in it, so root
 * would be deceived; other users see only what is their own. For root, only a program that is
 * root's, or of this tool's own owner, counts as a server.
 * @param owner of the directory */
static bool is_server(int fd, uid_t owner)
{
    char link[32], path[PATH_MAX];
    struct stat program, own;
    pid_t pid = local_peer_pid(fd);
    if (geteuid() != 0 || owner == 0 || pid == 0)
        return true;
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    const char *name = strrchr(path, '/');
    return name != NULL &&
           strncmp(name + 1, SERVER_PROGRAM, strlen(SERVER_PROGRAM)) == 0 && /* " (deleted)" */
           stat(link, &program) == 0 &&
           (program.st_uid == 0 ||
            (stat("/proc/self/exe", &own) == 0 && program.st_uid == own.st_uid));
}

/* Connects to what the descriptor is, whatever its name means by now.
 * @return a socket, or -1 with errno set */
static int connect_to(int inode, uid_t owner)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d", inode);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0) {
        if (local_peer(fd) == owner && is_server(fd, owner))
            return fd;
        errno = EPERM;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* Opens the socket in a directory of @p owner. @param st set to what it is
 * @return a connection, or -1 with errno set */
static int open_socket(int dir, uid_t owner, struct stat *st)
{
    int inode = openat(dir, STATUS_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
    if (inode < 0)
        return -1;
    if (fstat(inode, st) != 0 || !S_ISSOCK(st->st_mode) || st->st_uid != owner)
        errno = EPERM;
    else
        fd = connect_to(inode, owner);
    int saved = errno;
    close(inode);
    errno = saved;
    return fd;
}

static bool is_later(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* Of several servers of one owner the last one that was started is taken: a job was requeued, and
 * the first run still has a server here. */
static void take(struct seen *seen, int fd, uid_t owner, const struct stat *at)
{
    bool same = seen->live >= 0 && at->st_dev == seen->at.st_dev && at->st_ino == seen->at.st_ino;
    bool other = seen->live >= 0 && owner != seen->owner;
    if (other) {
        seen->ambiguous = true;
        seen->other = owner;
    } else if (!same) {
        seen->runs++;
    }
    if (other || same || (seen->live >= 0 && !is_later(at, &seen->at))) {
        close(fd);
        return;
    }
    if (seen->live >= 0)
        close(seen->live);
    seen->live = fd;
    seen->owner = owner;
    seen->at = *at;
}

static void look_at(const struct find *find, int parent, const char *name, struct seen *seen)
{
    struct stat st, at;
    int dir = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) != 0) {
        seen->error = errno;
    } else if (find->uid != (uid_t)-1 && st.st_uid != find->uid) {
        seen->foreign = true;
        seen->stranger = st.st_uid;
    } else {
        int fd = open_socket(dir, st.st_uid, &at);
        if (fd >= 0) {
            take(seen, fd, st.st_uid, &at);
        } else if (errno == ECONNREFUSED || errno == ENOENT) {
            seen->dead = true;
        } else {
            seen->error = errno;
        }
    }
    if (dir >= 0)
        close(dir);
}

const char *find_user_name(uid_t uid, char *buf, size_t cap)
{
    const struct passwd *user = getpwuid(uid);
    if (user != NULL)
        snprintf(buf, cap, "%s", user->pw_name);
    else
        snprintf(buf, cap, "uid %u", (unsigned)uid);
    return buf;
}

static bool name_job(const struct find *find, const char *step, char *name, size_t cap)
{
    for (size_t i = 0; find->places != NULL && find->places[i] != NULL; i++)
        if (find->places[i]->name != NULL && find->places[i]->name(step, name, cap))
            return true;
    return false;
}

bool find_job(const struct find *find, const char *step, char *name, size_t cap)
{
    return step[strspn(step, "0123456789")] != '\0' && name_job(find, step, name, cap);
}

const char *find_unit(const struct find *find, const char *step)
{
    char name[FIND_STEP_MAX + 1];
    return name_job(find, step, name, sizeof name) ? "job" : "step";
}

/* A search: for what, what was seen, and where it was. */
struct search {
    const struct find *find;
    struct seen seen;
    bool named;              /* a resource manager knows a step by that name */
    struct find_step *steps; /* of every step: all that were found, owned */
    size_t nsteps;
    struct err failed; /* a directory cannot be read */
    char where[512];
};

static void add_step(struct search *search, const char *name, uid_t owner)
{
    for (size_t i = 0; i < search->nsteps; i++)
        if (strcmp(search->steps[i].name, name) == 0 && search->steps[i].owner == owner)
            return;
    struct find_step *more = realloc(search->steps, (search->nsteps + 1) * sizeof *more);
    if (more == NULL) {
        err_set(&search->failed, "out of memory");
        return;
    }
    search->steps = more;
    snprintf(more[search->nsteps].name, sizeof more->name, "%s", name);
    more[search->nsteps++].owner = owner;
}

/* Adds the step that a directory is of, when its server is there. */
static void list_one(struct search *search, int parent, const char *directory, const char *step)
{
    struct seen seen = {.live = -1};
    look_at(search->find, parent, directory, &seen);
    if (seen.live < 0)
        return;
    close(seen.live);
    add_step(search, step, seen.owner);
}

/* Looks at all directories of the step in one. */
static void visit(void *arg, const char *dir, const char *step)
{
    struct search *search = arg;
    const struct dirent *entry;
    char found[FIND_STEP_MAX + 1];
    bool list = search->find->step == NULL;
    if (!list && !find_is_step(step))
        return;
    search->named = true;
    DIR *parent = opendir(dir != NULL ? dir : search->find->dir);
    if (parent == NULL) { /* of a place: it has just gone */
        if (dir == NULL)
            err_set(&search->failed, "cannot read the directory %s: %s", search->find->dir,
                    strerror(errno));
        return;
    }
    while ((entry = readdir(parent)) != NULL)
        if (!step_of(entry->d_name, found) || (step != NULL && strcmp(step, found) != 0))
            continue;
        else if (list)
            list_one(search, dirfd(parent), entry->d_name, found);
        else
            look_at(search->find, dirfd(parent), entry->d_name, &search->seen);
    closedir(parent);
}

static void look_everywhere(struct search *search)
{
    const struct find *find = search->find;
    snprintf(search->where, sizeof search->where, "%s", find->dir);
    visit(search, NULL, find->step); /* a place may do so again, by another name or the same */
    if (find->only && search->seen.live >= 0)
        return;
    for (size_t i = 0; find->places != NULL && find->places[i] != NULL; i++) {
        char where[256] = "";
        size_t len = strlen(search->where);
        find->places[i]->each(find->step, visit, search, where, sizeof where);
        if (where[0] != '\0')
            snprintf(search->where + len, sizeof search->where - len, " or %s", where);
    }
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct find_step *)a)->name, ((const struct find_step *)b)->name);
}

struct find_step *find_steps(const struct find *find, size_t *n, struct err *err)
{
    struct search search = {.find = find};
    char one[64], lists[PLACE_LISTS_SIZE];
    look_everywhere(&search);
    place_lists(find->places, lists);
    *n = search.nsteps;
    if (search.failed.text[0] != '\0')
        err_set(err, "%s", search.failed.text);
    else if (*n == 0)
        err_set(
            err,
            "no step or job%s%s has a server on this node; looked in %s; of one on other nodes: "
            "muster-status --stacks STEP%s%s%s",
            find->uid == (uid_t)-1 ? "" : " of ",
            find->uid == (uid_t)-1 ? "" : find_user_name(find->uid, one, sizeof one), search.where,
            lists[0] != '\0' ? " (" : "", lists, lists[0] != '\0' ? " lists yours)" : "");
    if (err->text[0] != '\0') {
        free(search.steps);
        return NULL;
    }
    qsort(search.steps, *n, sizeof *search.steps, by_name);
    return search.steps;
}

/* @return a connection, or -1 with the reason in @p err */
static int find_server(const struct find *find, struct found *found, struct err *err)
{
    struct search search = {.find = find, .seen = {.live = -1}};
    char one[64], two[64], lists[PLACE_LISTS_SIZE];
    look_everywhere(&search);
    struct seen seen = search.seen;
    *found = (struct found){.owner = seen.owner, .runs = seen.runs};
    if (!search.named)
        return err_set(err,
                       "\"%.80s\" names no step or job: a step of Slurm is 4711.0, a job of Flux "
                       "f2fC5xbh",
                       find->step);
    if (seen.live >= 0 && !seen.ambiguous)
        return seen.live;
    const char *unit = find_unit(find, find->step);
    if (seen.ambiguous) {
        close(seen.live);
        return err_set(err,
                       "servers of both %s and %s say that they are of %s %s; choose by --user",
                       find_user_name(seen.owner, one, sizeof one),
                       find_user_name(seen.other, two, sizeof two), unit, find->step);
    }
    if (seen.error != 0)
        return err_set(err, "the server of %s %s on this node cannot be asked: %s", unit,
                       find->step, strerror(seen.error));
    if (seen.dead)
        return err_set(err, "the server of %s %s on this node has ended, or is about to start",
                       unit, find->step);
    if (seen.foreign)
        return err_set(err, "%s %s is %s's; only its owner and root may look at it", unit,
                       find->step, find_user_name(seen.stranger, one, sizeof one));
    if (search.failed.text[0] != '\0')
        return err_set(err, "%s", search.failed.text);
    place_lists(find->places, lists);
    return err_set(
        err,
        "no server of %s %s runs on this node: the %s has ended, does not use muster, "
        "or has no task here; run this on one of its nodes%s%s%s, and with --dir if its servers' "
        "directories are not in %s (see muster-status(1))",
        unit, find->step, unit, lists[0] != '\0' ? " (" : "", lists,
        lists[0] != '\0' ? " lists yours)" : "", search.where);
}

/* @return bytes that came, 0 at the end, -1 with the reason in @p err */
static ssize_t read_some(int fd, char *buf, size_t cap, int64_t deadline, struct err *err)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int rc = poll(&wait, 1, deadline_left(deadline));
        if (rc == 0)
            return err_set(err, "the server on this node does not answer");
        ssize_t n = rc < 0 ? -1 : read(fd, buf, cap);
        if (n >= 0)
            return n;
        if (errno != EINTR && errno != EAGAIN)
            return err_set(err, "the server on this node broke off: %s", strerror(errno));
    }
}

/* @param line the answer ends with the line, not with the connection */
static char *read_answer(int fd, bool line, int64_t deadline, struct err *err)
{
    size_t len = 0, cap = 1 << 16;
    char *text = malloc(cap);
    while (text != NULL) {
        ssize_t n = read_some(fd, text + len, cap - len - 1, deadline, err);
        if (n == 0 && len > 0) {
            text[len] = '\0';
            return text;
        }
        if (n == 0)
            err_set(err, "the server on this node says nothing: it refuses, or has too much to do");
        if (n <= 0)
            break;
        len += (size_t)n;
        if (line && text[len - 1] == '\n') {
            text[len] = '\0';
            return text;
        }
        if (len + 1 < cap)
            continue;
        cap *= 2;
        char *larger = cap <= FIND_ANSWER_MAX ? realloc(text, cap) : NULL;
        if (larger == NULL) {
            err_set(err, "the answer is too long");
            break;
        }
        text = larger;
    }
    free(text);
    return NULL;
}

/* @return the connection, or -1 with the reason in @p err */
static int ask(const struct find *find, const char *request, struct found *found, struct err *err)
{
    int fd = find_server(find, found, err);
    found->guard = -1;
    if (fd < 0 || send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request))
        return fd;
    err_set(err, "the server on this node cannot be asked: %s", strerror(errno));
    close(fd);
    return -1;
}

char *find_state(const struct find *find, struct found *found, struct err *err)
{
    int fd = ask(find, find->all ? "all\n" : "local\n", found, err);
    char *answer = fd >= 0 ? read_answer(fd, false, now_ms() + find->ms, err) : NULL;
    if (fd >= 0)
        close(fd);
    return answer;
}

char *find_guarded(const struct find *find, struct found *found, struct err *err)
{
    int fd = ask(find, "guard\n", found, err);
    char *answer = fd >= 0 ? read_answer(fd, true, now_ms() + find->ms, err) : NULL;
    found->guard = fd;
    if (answer == NULL)
        find_let_go(found, true);
    return answer;
}

void find_let_go(struct found *found, bool well)
{
    static const char word[] = "end\n";
    if (found->guard < 0)
        return;
    if (well && send(found->guard, word, sizeof word - 1, MSG_NOSIGNAL) < 0)
        log_debug("the server on this node has ended: %s", strerror(errno));
    close(found->guard);
    found->guard = -1;
}
