#define _GNU_SOURCE
#include "CLinux.h"
#include "descriptor_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

_Static_assert(linux_UTIME_NOW == UTIME_NOW && linux_UTIME_OMIT == UTIME_OMIT, "values on this architecture");
_Static_assert(linux_AT_EMPTY_PATH == AT_EMPTY_PATH, "value on this architecture");

static struct linux_time to_linux_time(struct statx_timestamp time) {
  return (struct linux_time){.seconds = time.tv_sec, .nanoseconds = time.tv_nsec};
}

static int read_attributes(int directory, const char *path, int flags, struct linux_attributes *result) {
  struct statx x;
  if (statx(directory, path, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
            STATX_BASIC_STATS | STATX_BTIME, &x) != 0)
    return -1;
  *result = (struct linux_attributes){
      .inode = x.stx_ino,
      .device = makedev(x.stx_dev_major, x.stx_dev_minor),
      .size = x.stx_size,
      .blocks = x.stx_blocks,
      .rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor),
      .accessed = to_linux_time(x.stx_atime),
      .modified = to_linux_time(x.stx_mtime),
      .changed = to_linux_time(x.stx_ctime),
      .born = to_linux_time(x.stx_btime),
      .mode = x.stx_mode,
      .owner = x.stx_uid,
      .group = x.stx_gid,
      .links = x.stx_nlink,
      .block_size = x.stx_blksize,
      .has_birth = (x.stx_mask & STATX_BTIME) != 0,
      .is_immutable = (x.stx_attributes & STATX_ATTR_IMMUTABLE) != 0,
      .is_append_only = (x.stx_attributes & STATX_ATTR_APPEND) != 0,
  };
  return 0;
}

int linux_statx(int directory, const char *path, struct linux_attributes *result) {
  return read_attributes(directory, path, 0, result);
}

int linux_fstatx(int file, struct linux_attributes *result) {
  return read_attributes(file, "", AT_EMPTY_PATH, result);
}

int linux_cached_statx(int file, struct linux_attributes *result) {
  return read_attributes(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, result);
}

int linux_cached_statx_at(int directory, const char *path, struct linux_attributes *result) {
  return read_attributes(directory, path, AT_STATX_DONT_SYNC, result);
}

int linux_device(int file, uint64_t *device) {
  struct statx x;
  int result = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x);
  if (result == 0)
    *device = makedev(x.stx_dev_major, x.stx_dev_minor);
  return result;
}

int linux_change_mode(int file, mode_t mode) {
  // SYS_fchmodat2 (Linux 6.6), which has the same number on all architectures.
  if (syscall(452, file, "", mode, AT_EMPTY_PATH) == 0) return 0;
  if (errno != ENOSYS && errno != EPERM) return -1;
  struct stat attributes;
  if (fstat(file, &attributes) != 0) return -1;
  if (S_ISLNK(attributes.st_mode)) {
    errno = EOPNOTSUPP;
    return -1;
  }
  char path[32];
  path_of(file, path);
  return chmod(path, mode);
}

int linux_rewrite_times(int file, bool including_access) {
  struct statx x;
  if (statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_ATIME | STATX_MTIME, &x) != 0)
    return -1;
  struct timespec times[2] = {
      {.tv_sec = x.stx_atime.tv_sec, .tv_nsec = including_access ? x.stx_atime.tv_nsec : UTIME_OMIT},
      {.tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec},
  };
  return utimensat(file, "", times, AT_EMPTY_PATH);
}

uint64_t linux_makedev(uint32_t major, uint32_t minor) { return makedev(major, minor); }
uint32_t linux_major(uint64_t device) { return major(device); }
uint32_t linux_minor(uint64_t device) { return minor(device); }
