#define _GNU_SOURCE
#include "CLinux.h"
#include "descriptor_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(linux_O_PATH == O_PATH, "value on this architecture");
_Static_assert(linux_O_DIRECT == O_DIRECT, "value on this architecture");

int linux_openat(int directory, const char *path, int flags) { return openat(directory, path, flags); }

int linux_open_no_symlinks(const char *path, uint64_t *mount) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
  int file = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  if (file < 0)
    return -1;
  if (linux_mount_id(file, mount) != 0) {
    int error = errno;
    close(file);
    errno = error;
    return -1;
  }
  return file;
}

int linux_open_beneath(int directory, const char *path, int flags) {
  struct open_how how = {
      .flags = (uint64_t)flags | O_CLOEXEC,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
  };
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int linux_create(int directory, const char *name, mode_t mode) {
  return openat(directory, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
}

int linux_create_unnamed(int directory, bool is_linkable) {
  return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | (is_linkable ? 0 : O_EXCL), 0600);
}

static int unlinked_temporary_file(const char *directory) {
  char *path;
  // Fails only for lack of memory, which the caller reports as the errno of a cache file that it cannot make.
  if (asprintf(&path, "%s/bundlefs-XXXXXX", directory) < 0) {
    errno = ENOMEM;
    return -1;
  }
  int file = mkostemp(path, O_CLOEXEC);
  int saved = errno;
  if (file >= 0)
    unlink(path);
  free(path);
  errno = saved;
  return file;
}

int linux_temporary_file(const char *directory) {
  int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // Not all file systems support O_TMPFILE; some fail with EISDIR.
  if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOSYS))
    return unlinked_temporary_file(directory);
  return file;
}

int linux_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

int linux_link(int file, int directory, const char *name) {
  if (linkat(file, "", directory, name, AT_EMPTY_PATH) == 0) return 0;
  if (errno != ENOENT) return -1;
  char path[32];
  path_of(file, path);
  return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}

int linux_rename(int directory, const char *name, int new_directory, const char *new_name, unsigned flags) {
  return renameat2(directory, name, new_directory, new_name, flags);
}

ssize_t linux_getdents64(int directory, void *buffer, size_t size) {
  return syscall(SYS_getdents64, directory, buffer, size);
}

int linux_ioctl(int file, unsigned long command, void *argument) { return ioctl(file, command, argument); }

int linux_pipe(int *ends) { return pipe2(ends, O_CLOEXEC); }
