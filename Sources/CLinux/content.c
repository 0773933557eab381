#define _GNU_SOURCE
#include "CLinux.h"
#include "descriptor_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(linux_SEEK_DATA == SEEK_DATA && linux_SEEK_HOLE == SEEK_HOLE, "values on this architecture");

int linux_resize(int file, int64_t size) {
  if (ftruncate(file, size) == 0) return 0;
  // EINVAL and EBADF: the descriptor is not open for writing.
  if (size < 0 || (errno != EINVAL && errno != EBADF)) return -1;
  char path[32];
  path_of(file, path);
  return truncate(path, size);
}

int linux_allocate(int file, int mode, int64_t offset, int64_t count) {
  return fallocate(file, mode, offset, count);
}

int linux_punch_hole(int file, int64_t offset, int64_t length) {
  return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

ssize_t linux_append(int file, const void *bytes, size_t count) {
  struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
  return pwritev2(file, &part, 1, 0, RWF_APPEND);
}

int linux_clone_content(int source, int target) { return ioctl(target, FICLONE, source); }

ssize_t linux_copy_range(int source, int target, int64_t offset, size_t count) {
  off_t from = offset, to = offset;
  return copy_file_range(source, &from, target, &to, count, 0);
}

int linux_write_back(int file, int64_t offset, int64_t count, bool waits) {
  unsigned waiting = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
  return sync_file_range(file, offset, count, SYNC_FILE_RANGE_WRITE | (waits ? waiting : 0));
}
