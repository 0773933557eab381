#define _GNU_SOURCE
#include "CLinux.h"
#include "descriptor_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

long linux_fstatfs_type(int file) {
  struct statfs result;
  return fstatfs(file, &result) == 0 ? (long)result.f_type : -1;
}

bool linux_has_casefold_flag(int directory) {
  long flags = 0; // Of which the kernel sets an int.
  return ioctl(directory, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL);
}

int linux_clone_mount(int directory, bool is_writable) {
  int tree = open_tree(directory, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0)
    return -1;
  struct mount_attr attributes = {
      .attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSYMFOLLOW | (is_writable ? 0 : MOUNT_ATTR_RDONLY),
      .propagation = MS_PRIVATE,
  };
  if (mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    int saved = errno;
    close(tree);
    errno = saved;
    return -1;
  }
  return tree;
}

int linux_clone_mount_at(const char *path) {
  return open_tree(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

int linux_mount_id(int file, uint64_t *mount) {
  struct statx x;
  int result = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x);
  if (result == 0)
    *mount = (x.stx_mask & STATX_MNT_ID) ? x.stx_mnt_id : 0;
  return result;
}

int linux_unique_mount_id(int file, uint64_t *mount) {
  // STATX_MNT_ID_UNIQUE, which Debian 12's headers lack.
  const unsigned mask = 0x4000;
  struct statx x;
  int result = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &x);
  if (result == 0)
    *mount = (x.stx_mask & mask) ? x.stx_mnt_id : 0;
  return result;
}

int linux_unmount(const char *path, bool lazily) {
  return umount2(path, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0));
}

int linux_abort_mount(const char *path) { return umount2(path, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW); }

int linux_detach(int root) {
  char path[32];
  path_of(root, path);
  return umount2(path, MNT_FORCE | MNT_DETACH);
}

int linux_enter_mount_namespace(int file) { return setns(file, CLONE_NEWNS); }

int linux_unshare_mounts(bool with_users) { return unshare(CLONE_NEWNS | (with_users ? CLONE_NEWUSER : 0)); }

int linux_stop_propagation(void) { return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL); }
