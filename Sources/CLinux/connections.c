#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/// Asks sock_diag(7) for one socket, and reads its description.
static int describe(int netlink, const struct inet_diag_req_v2 *wanted, struct inet_diag_msg *found) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 wanted;
  } request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
      .wanted = *wanted,
  };
  union {
    struct nlmsghdr header;
    char bytes[8192];
  } reply;
  if (send(netlink, &request, sizeof request, 0) < 0)
    return -1;
  ssize_t size = recv(netlink, &reply, sizeof reply, MSG_DONTWAIT);
  if (size < 0)
    return -1;
  if (!NLMSG_OK(&reply.header, (size_t)size) || reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      reply.header.nlmsg_len < NLMSG_LENGTH(sizeof *found)) {
    errno = ENOENT;
    return -1;
  }
  memcpy(found, NLMSG_DATA(&reply.header), sizeof *found);
  return 0;
}

int linux_tcp_owner(uint32_t address, uint16_t port, uint32_t other_address, uint16_t other_port, uint32_t *user) {
  struct inet_diag_req_v2 wanted = {
      .sdiag_family = AF_INET,
      .sdiag_protocol = IPPROTO_TCP,
      .idiag_states = ~0U,
      .id = {
          .idiag_sport = port,
          .idiag_dport = other_port,
          .idiag_src = {address},
          .idiag_dst = {other_address},
          .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE},
      },
  };
  int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0)
    return -1;
  struct inet_diag_msg found;
  int result = describe(netlink, &wanted, &found);
  int error = errno;
  close(netlink);
  errno = error;
  if (result < 0)
    return -1;
  // The kernel forgets the user of a socket that is closed.
  if (found.idiag_state != TCP_ESTABLISHED) {
    errno = ENOTCONN;
    return -1;
  }
  *user = found.idiag_uid;
  return 0;
}
