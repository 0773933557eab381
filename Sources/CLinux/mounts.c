#define _GNU_SOURCE
#include "CLinux.h"
#include "descriptor_path.h"
#include "mount_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
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
  int tree = call_open_tree(directory, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0)
    return -1;
  struct mount_attr attributes = {
      .attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSYMFOLLOW | (is_writable ? 0 : MOUNT_ATTR_RDONLY),
      .propagation = MS_PRIVATE,
  };
  if (call_mount_setattr(tree, "", AT_EMPTY_PATH, &attributes) != 0) {
    int saved = errno;
    close(tree);
    errno = saved;
    return -1;
  }
  return tree;
}

int linux_clone_mount_at(const char *path) {
  return call_open_tree(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
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

/// What a child that shares this memory needs and leaves.
struct further_mount {
  int users;
  char device[12], user[12], group[12];
  int root;
  int error;
};

static int set_parameter(int context, const char *name, const char *value) {
  return call_fsconfig(context, FSCONFIG_SET_STRING, name, value);
}

static void mount_further(struct further_mount *mount) {
  int context = call_fsopen("fuse", FSOPEN_CLOEXEC);
  // The kernel finds the file system by the connection, but demands what a new one needs.
  if (context >= 0 && set_parameter(context, "fd", mount->device) == 0 &&
      set_parameter(context, "rootmode", "40000") == 0 && set_parameter(context, "user_id", mount->user) == 0 &&
      set_parameter(context, "group_id", mount->group) == 0 &&
      call_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL) == 0)
    mount->root = call_fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  mount->error = errno;
  if (context >= 0)
    close(context);
}

static int mount_further_in_child(void *argument) {
  struct further_mount *mount = argument;
  // A mount namespace of that user namespace is required, too. It ends with the parent, which setns(2) would forget.
  if (setns(mount->users, CLONE_NEWUSER) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && unshare(CLONE_NEWNS) == 0)
    mount_further(mount);
  else
    mount->error = errno;
  return 0;
}

/// A process of several threads cannot enter a user namespace, but a child that shares its memory and files can.
static void mount_further_by_child(struct further_mount *mount) {
  _Alignas(16) char stack[16 << 10];
  sigset_t all, before;
  sigfillset(&all);
  // The child would run the handlers.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int child = clone(mount_further_in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_FILES, mount);
  if (child < 0)
    mount->error = errno;
  else
    while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int linux_mount_further(int device, int users) {
  struct further_mount mount = {.users = users, .root = -1, .error = EAGAIN};
  snprintf(mount.device, sizeof mount.device, "%d", device);
  snprintf(mount.user, sizeof mount.user, "%u", geteuid());
  snprintf(mount.group, sizeof mount.group, "%u", getegid());
  if (users < 0)
    mount_further(&mount);
  else
    mount_further_by_child(&mount);
  errno = mount.error;
  return mount.root;
}
