#ifndef CLINUX_MOUNT_CALLS_H
#define CLINUX_MOUNT_CALLS_H

#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc wraps these calls since 2.36. By their numbers, a program that was built with it also starts with an older one.

static inline int call_open_tree(int directory, const char *path, unsigned flags) {
  return (int)syscall(SYS_open_tree, directory, path, flags);
}

static inline int call_mount_setattr(int directory, const char *path, unsigned flags, struct mount_attr *attributes) {
  return (int)syscall(SYS_mount_setattr, directory, path, flags, attributes, sizeof *attributes);
}

static inline int call_fsopen(const char *type, unsigned flags) { return (int)syscall(SYS_fsopen, type, flags); }

static inline int call_fsconfig(int context, unsigned command, const char *key, const char *value) {
  return (int)syscall(SYS_fsconfig, context, command, key, value, 0);
}

static inline int call_fsmount(int context, unsigned flags, unsigned attributes) {
  return (int)syscall(SYS_fsmount, context, flags, attributes);
}

#endif
