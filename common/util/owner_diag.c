/* SPDX-License-Identifier: BSD-3-Clause */
/* One socket, asked of the kernel by its two ends (sock_diag(7)).
 *
 * The netlink socket lives for one question: the kernel answers within send(), so nothing waits,
 * and the question is about the network namespace that we are in, as the connection is. */
#include "common/util/owner_private.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 4096, ALL_STATES = 0xfff };

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

/* As the kernel has it: of IPv4 one word, of IPv6 four. */
static void put_address(__be32 words[4], const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        memcpy(words, &address->s6_addr[12], 4);
    else
        memcpy(words, address, sizeof *address);
}

static bool has_address(unsigned char family, const __be32 words[4], const struct in6_addr *address)
{
    if (family == AF_INET)
        return IN6_IS_ADDR_V4MAPPED(address) && memcmp(words, &address->s6_addr[12], 4) == 0;
    return family == AF_INET6 && memcmp(words, address, sizeof *address) == 0;
}

/* @return 0 with the answer, or the errno of what failed; ENOENT is the kernel's own for a socket
 * that is not there */
static int ask(const struct ends *ends, struct inet_diag_msg *answer)
{
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_MAX];
    } in;
    struct question q = {
        .head = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = IN6_IS_ADDR_V4MAPPED(&ends->there) ? AF_INET : AF_INET6,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ALL_STATES,
                 .id = {.idiag_sport = ends->there_port,
                        .idiag_dport = ends->here_port,
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    put_address(q.body.id.idiag_src, &ends->there);
    put_address(q.body.id.idiag_dst, &ends->here);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return errno;
    struct sockaddr_nl from = {0};
    socklen_t from_len = sizeof from;
    ssize_t n = send(fd, &q, sizeof q, 0);
    if (n >= 0)
        n = recvfrom(fd, &in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
    int error = n < 0 ? errno : 0;
    close(fd);
    if (error != 0)
        return error;
    if (from.nl_pid != 0 || !NLMSG_OK(&in.head, (size_t)n))
        return EBADMSG;
    if (in.head.nlmsg_type == NLMSG_ERROR &&
        in.head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
        return -((const struct nlmsgerr *)NLMSG_DATA(&in.head))->error;
    if (in.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        in.head.nlmsg_len < NLMSG_LENGTH(sizeof *answer))
        return EBADMSG;
    memcpy(answer, NLMSG_DATA(&in.head), sizeof *answer);
    return 0;
}

enum owner owner_judge(const struct ends *ends, const struct inet_diag_msg *answer, uid_t uid)
{
    const struct inet_diag_sockid *id = &answer->id;
    if (id->idiag_sport != ends->there_port || id->idiag_dport != ends->here_port ||
        !has_address(answer->idiag_family, id->idiag_src, &ends->there) ||
        !has_address(answer->idiag_family, id->idiag_dst, &ends->here))
        return OWNER_GONE;
    if (answer->idiag_state != TCP_ESTABLISHED || answer->idiag_inode == 0)
        return OWNER_GONE;
    return answer->idiag_uid == uid ? OWNER_US : OWNER_OTHER;
}

enum owner owner_diag(const struct ends *ends, uid_t uid)
{
    struct inet_diag_msg answer;
    int error = ask(ends, &answer);
    errno = error == ENOENT ? 0 : error;
    return error == 0 ? owner_judge(ends, &answer, uid) : OWNER_GONE;
}

/* A listening socket of our own: asked for without another end, it is found if any is. */
int owner_diag_probe(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof own;
    struct ends ends = {.here.s6_addr = {[10] = 0xff, [11] = 0xff},
                        .there.s6_addr = {[10] = 0xff, [11] = 0xff}};
    struct inet_diag_msg answer;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0;
    if (fd < 0)
        return errno;
    if (bind(fd, (struct sockaddr *)&own, sizeof own) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &len) != 0)
        error = errno;
    memcpy(&ends.there.s6_addr[12], &own.sin_addr, 4);
    ends.there_port = own.sin_port;
    if (error == 0)
        error = ask(&ends, &answer);
    if (error == 0 && (answer.idiag_state != TCP_LISTEN || answer.idiag_uid != geteuid()))
        error = EBADMSG;
    close(fd);
    return error;
}
