#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/// Room for one descriptor.
union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t linux_send_packet(int socket, const void *bytes, size_t count, int file) {
  struct iovec vector = {.iov_base = (void *)bytes, .iov_len = count};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  union control control;
  memset(&control, 0, sizeof control);
  if (file >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  ssize_t sent;
  do
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t linux_receive_packet(int socket, void *bytes, size_t size, int *file) {
  struct iovec vector = {.iov_base = bytes, .iov_len = size};
  union control control;
  struct msghdr message = {
      .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  *file = -1;
  ssize_t received;
  do
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received < 0) return received;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof *file))
    memcpy(file, CMSG_DATA(header), sizeof *file);
  return received;
}
