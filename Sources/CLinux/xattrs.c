#define _GNU_SOURCE
#include "CLinux.h"
#include "descriptor_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

ssize_t linux_getxattr(int file, const char *name, void *value, size_t size) {
  ssize_t length = fgetxattr(file, name, value, size);
  if (length >= 0 || errno != EBADF) return length;
  char path[32];
  path_of(file, path);
  return getxattr(path, name, value, size);
}

ssize_t linux_getxattr_at(int directory, const char *path, const char *name, void *value, size_t size) {
  // SYS_getxattrat (Linux 6.13), which has the same number on all architectures.
  struct {
    uint64_t value;
    uint32_t size, flags;
  } arguments = {(uintptr_t)value, (uint32_t)size, 0};
  return syscall(464, directory, path, AT_SYMLINK_NOFOLLOW, name, &arguments, sizeof arguments);
}

ssize_t linux_listxattr(const char *path, char *list, size_t size) { return listxattr(path, list, size); }

int linux_setxattr(const char *path, const char *name, const void *value, size_t size, int flags) {
  return setxattr(path, name, value, size, flags);
}

int linux_removexattr(const char *path, const char *name) { return removexattr(path, name); }
