#include "CLinux.h"

#include <sys/epoll.h>

int linux_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int linux_epoll_add(int epoll, int file, bool is_urgent, uint64_t bits) {
  struct epoll_event event = {.events = is_urgent ? EPOLLPRI : EPOLLIN, .data.u64 = bits};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event);
}

uint64_t linux_epoll_poll(int epoll) {
  struct epoll_event events[2];
  int count = epoll_wait(epoll, events, 2, 0);
  if (count < 0) return UINT64_MAX;
  uint64_t bits = 0;
  for (int index = 0; index < count; index++) bits |= events[index].data.u64;
  return bits;
}
