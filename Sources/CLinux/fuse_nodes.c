#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int linux_open_fuse_node(int directory, uint64_t node) {
  // FUSE's file handle: the nodeid, high half first, and the generation, which is always 0 here.
  enum { type = 0x81, words = 3 };
  struct {
    struct file_handle head;
    uint32_t words[words];
  } handle = {
      .head = {.handle_bytes = sizeof(uint32_t) * words, .handle_type = type},
      .words = {(uint32_t)(node >> 32), (uint32_t)node, 0},
  };
  return open_by_handle_at(directory, &handle.head, O_PATH | O_CLOEXEC);
}

int linux_fuse_size(int directory, uint64_t node, bool force_sync, uint64_t *size) {
  int file = linux_open_fuse_node(directory, node);
  if (file < 0)
    return -1;
  struct statx x;
  int sync = force_sync ? AT_STATX_FORCE_SYNC : AT_STATX_DONT_SYNC;
  int result = statx(file, "", AT_EMPTY_PATH | sync, STATX_SIZE, &x);
  close(file);
  if (result == 0)
    *size = x.stx_size;
  return result;
}
