// The Linux calls that Swift's Glibc module does not show, because glibc declares them for GNU sources
// only. Each returns what the call returns and leaves errno as the call left it.
#ifndef BUNDLEFS_CLINUX_H
#define BUNDLEFS_CLINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

/// A moment as the kernel gives it: seconds and nanoseconds since the epoch.
struct linux_time {
  int64_t seconds;
  uint32_t nanoseconds;
};

/// What statx(2) tells of a file.
struct linux_attributes {
  uint64_t inode;
  uint64_t device;
  uint64_t size;
  uint64_t blocks;
  uint64_t rdev;
  struct linux_time accessed, modified, changed, born;
  uint32_t mode;
  uint32_t owner;
  uint32_t group;
  uint32_t links;
  uint32_t block_size;
  bool has_birth;
};

enum {
  linux_O_PATH = 010000000,
  linux_SEEK_DATA = 3,
  linux_SEEK_HOLE = 4,
};

int linux_statx(int directory, const char *path, struct linux_attributes *result);
/// The attributes of the open file itself.
int linux_fstatx(int file, struct linux_attributes *result);
/// The same as the kernel has them; its file system is not asked.
int linux_known_attributes(int file, struct linux_attributes *result);
int linux_openat(int directory, const char *path, int flags);
ssize_t linux_getdents64(int directory, void *buffer, size_t size);
ssize_t linux_getxattr(const char *path, const char *name, void *value, size_t size);
/// The same of an open directory, also one of O_PATH; ENOSYS before Linux 6.13.
ssize_t linux_getxattr_of_directory(int directory, const char *name, void *value, size_t size);
ssize_t linux_listxattr(const char *path, char *list, size_t size);
/// The magic number of the file system that holds the open file; -1 with errno on failure.
long linux_fstatfs_type(int file);

/// A private, read-only clone of the mount that holds the open directory, from there down, without what is
/// mounted below; devices in
/// it cannot be opened. Needs CAP_SYS_ADMIN.
int linux_clone_mount(int directory);

/// The size of a FUSE file: fresh from the file system, or what the kernel keeps, without a request. The
/// directory is any one of the mount, open for reading. Needs CAP_DAC_READ_SEARCH.
int linux_fuse_size(int directory, uint64_t node, bool fresh, uint64_t *size);

/// The device that the open file is on; a file system of elsewhere is not asked.
int linux_device(int file, uint64_t *device);

/// Opens a directory (O_PATH) by an absolute path without symbolic links, and tells the number of the mount
/// that holds it. ELOOP where there is a link. Needs Linux 5.8.
int linux_open_without_links(const char *path, uint64_t *mount);

/// Opens an entry below a directory of the same mount: no link, no `..` and nothing that is mounted there leads
/// elsewhere (ELOOP, EXDEV). Needs Linux 5.6.
int linux_open_beneath(int directory, const char *path, int flags);

/// Gives an open file, which may be open as a place only, the times that the kernel knows it to have: that of its
/// modification, and, if both are wanted, that of its last access. Needs Linux 5.8.
int linux_keep_times(int file, bool both);

/// The calling thread's number.
pid_t linux_thread_number(void);

int linux_unmount(const char *path, bool lazily);

/// Goes to the mount namespace that the open file stands for.
int linux_enter_mount_namespace(int file);

/// A file without a name in a directory, for reading and writing; it goes with its descriptor.
int linux_temporary_file(const char *directory);
/// Gives back the room of a part of a file, which then reads as zeros; its size stays.
int linux_punch_hole(int file, int64_t offset, int64_t length);

/// Gives the signal a handler that does nothing, so that a blocking call returns EINTR.
int linux_install_interrupt_handler(int signal);

int linux_ioctl(int file, unsigned long command, void *argument);

/// An eventfd(2) counter that does not block.
int linux_eventfd(void);

/// Asks for short turns on the processor for the calling thread, and so to get them soon: a thread that wakes
/// with a shorter turn to come does not wait for the end of another's (Linux 6.12; nothing happens before).
void linux_prefer_short_turns(void);

/// Names the calling thread; what is over 15 bytes is cut.
void linux_name_thread(const char *name);

/// Gives the calling thread a working directory that it shares only with threads that it starts itself: the root.
/// Where that is forbidden it keeps the one that it has.
void linux_own_working_directory(void);

/// Makes an open directory, be it as a place only, the working directory of a thread that has its own.
/// Returns whether it is; `linux_leave_directory` comes then.
bool linux_enter_directory(int directory);

/// Makes the root the working directory again: one that a thread stays in would be in use.
void linux_leave_directory(void);

/// The two halves of a device number, encoded as stat(2) does.
uint64_t linux_makedev(uint32_t major, uint32_t minor);
uint32_t linux_major(uint64_t device);
uint32_t linux_minor(uint64_t device);

/// Goes on as two processes: 0 in the child, whose standard output is the descriptor, and which has no other
/// open file and ends with its parent; its process id in the parent. For a process of one thread only.
pid_t linux_fork_writing_to(int output);

#endif
