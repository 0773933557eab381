// Linux calls that Swift's Glibc module lacks, because glibc declares them only with _GNU_SOURCE. Each returns
// the result of the call, and sets errno as the call does.
#ifndef BUNDLEFS_CLINUX_H
#define BUNDLEFS_CLINUX_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "thread_state.h"

// MARK: - Constants, which the sources that use them compare with the machine's headers

enum {
  linux_O_PATH = 010000000,
#ifdef __aarch64__
  linux_O_DIRECT = 0200000,
#else
  linux_O_DIRECT = 040000,
#endif
  linux_SEEK_DATA = 3,
  linux_SEEK_HOLE = 4,
  linux_AT_EMPTY_PATH = 0x1000,
  linux_UTIME_NOW = (1 << 30) - 1,
  linux_UTIME_OMIT = (1 << 30) - 2,
};

// MARK: - Attributes (attributes.c)

/// struct statx_timestamp.
struct linux_time {
  int64_t seconds;
  uint32_t nanoseconds;
};

/// The fields of struct statx in use.
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
  /// STATX_ATTR_IMMUTABLE and STATX_ATTR_APPEND.
  bool is_immutable, is_append_only;
};

int linux_statx(int directory, const char *path, struct linux_attributes *result);
/// statx(2) with AT_EMPTY_PATH.
int linux_fstatx(int file, struct linux_attributes *result);
/// statx(2) with AT_EMPTY_PATH | AT_STATX_DONT_SYNC.
int linux_cached_statx(int file, struct linux_attributes *result);
/// linux_statx with AT_STATX_DONT_SYNC.
int linux_cached_statx_at(int directory, const char *path, struct linux_attributes *result);
/// The device number, by statx(2) with AT_STATX_DONT_SYNC.
int linux_device(int file, uint64_t *device);
/// Sets the modification time, and optionally the access time, to its cached value by utimensat(2) with
/// AT_EMPTY_PATH. Requires Linux 5.8.
int linux_rewrite_times(int file, bool including_access);
/// makedev(3), major(3) and minor(3).
uint64_t linux_makedev(uint32_t major, uint32_t minor);
uint32_t linux_major(uint64_t device);
uint32_t linux_minor(uint64_t device);
/// fchmodat2(2) with AT_EMPTY_PATH, or chmod(2) through /proc/self/fd before Linux 6.6. EOPNOTSUPP for a symbolic link.
int linux_change_mode(int file, mode_t mode);

// MARK: - Files (files.c)

int linux_openat(int directory, const char *path, int flags);
ssize_t linux_getdents64(int directory, void *buffer, size_t size);
/// openat2(2) of a directory with O_PATH and RESOLVE_NO_SYMLINKS. Sets the mount ID, 0 before Linux 5.8. Requires
/// Linux 5.6.
int linux_open_no_symlinks(const char *path, uint64_t *mount);
/// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS. Requires Linux 5.6.
int linux_open_beneath(int directory, const char *path, int flags);
/// Opens an unnamed file with O_TMPFILE | O_RDWR; falls back to mkstemp(3) and unlink(2).
int linux_temporary_file(const char *directory);
/// Calls memfd_create(2) with MFD_CLOEXEC.
int linux_memory_file(const char *name);
int linux_ioctl(int file, unsigned long command, void *argument);
/// pipe2(2) with O_CLOEXEC.
int linux_pipe(int *ends);
/// openat(2) with O_CREAT | O_EXCL | O_RDWR.
int linux_create(int directory, const char *name, mode_t mode);
/// openat(2) with O_TMPFILE | O_RDWR and the mode 0600, and O_EXCL unless linkable.
int linux_create_unnamed(int directory, bool is_linkable);
/// linkat(2) of an open file with AT_EMPTY_PATH, or through /proc/self/fd without CAP_DAC_READ_SEARCH.
int linux_link(int file, int directory, const char *name);
/// renameat2(2).
int linux_rename(int directory, const char *name, int new_directory, const char *new_name, unsigned flags);

// MARK: - Content of files (content.c)

/// fallocate(2) with FALLOC_FL_PUNCH_HOLE.
int linux_punch_hole(int file, int64_t offset, int64_t length);
/// ftruncate(2), or truncate(2) through /proc/self/fd if the file is not open for writing.
int linux_resize(int file, int64_t size);
/// fallocate(2).
int linux_allocate(int file, int mode, int64_t offset, int64_t count);
/// pwritev2(2) with RWF_APPEND.
ssize_t linux_append(int file, const void *bytes, size_t count);
/// ioctl(2) with FICLONE.
int linux_clone_content(int source, int target);
/// copy_file_range(2) to the same offset.
ssize_t linux_copy_range(int source, int target, int64_t offset, size_t count);
/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE.
/// Parameter waits: whether to wait until the range is written.
int linux_write_back(int file, int64_t offset, int64_t count, bool waits);

// MARK: - Extended attributes (xattrs.c)

/// fgetxattr(2), or getxattr(2) for an O_PATH descriptor.
ssize_t linux_getxattr(int file, const char *name, void *value, size_t size);
/// getxattrat(2) for an open directory, which may be O_PATH; ENOSYS before Linux 6.13.
ssize_t linux_getxattr_at(int directory, const char *path, const char *name, void *value, size_t size);
ssize_t linux_listxattr(const char *path, char *list, size_t size);
int linux_setxattr(const char *path, const char *name, const void *value, size_t size, int flags);
int linux_removexattr(const char *path, const char *name);

// MARK: - Mounts and their namespaces (mounts.c)

/// The f_type of fstatfs(2); -1 on failure.
long linux_fstatfs_type(int file);
/// Whether FS_IOC_GETFLAGS has FS_CASEFOLD_FL; false on failure.
bool linux_has_casefold_flag(int directory);
/// Clones the mount below the directory with open_tree(2), without submounts, as a private mount with
/// MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSYMFOLLOW, and MOUNT_ATTR_RDONLY unless writable. Requires CAP_SYS_ADMIN.
int linux_clone_mount(int directory, bool is_writable);
/// Clones the mount at a path with open_tree(2), as a detached mount. Requires CAP_SYS_ADMIN.
int linux_clone_mount_at(const char *path);
/// A further, detached mount of the FUSE file system whose /dev/fuse this is, wherever it is mounted (fsmount(2), Linux 5.15).
/// Requires CAP_SYS_ADMIN, or the user namespace of the mount, unless it is negative, to be the calling user's own.
int linux_mount_further(int device, int users);
/// The mount ID, by statx(2) with AT_STATX_DONT_SYNC; 0 before Linux 5.8.
int linux_mount_id(int file, uint64_t *mount);
/// The mount ID that is never reused, by statx(2) with AT_STATX_DONT_SYNC; 0 before Linux 6.8.
int linux_unique_mount_id(int file, uint64_t *mount);
/// umount2(2) with UMOUNT_NOFOLLOW, and MNT_DETACH if lazily.
int linux_unmount(const char *path, bool lazily);
/// umount2(2) with MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW.
int linux_abort_mount(const char *path);
/// umount2(2) with MNT_FORCE | MNT_DETACH of the mount whose root is open, or of one that covers it.
int linux_detach(int root);
/// setns(2) with CLONE_NEWNS.
int linux_enter_mount_namespace(int file);
/// unshare(2) with CLONE_NEWNS, and with CLONE_NEWUSER if the namespace has a user namespace of its own.
int linux_unshare_mounts(bool with_users);
/// mount(2) of `/` with MS_REC | MS_SLAVE.
int linux_stop_propagation(void);

// MARK: - Nodes of a FUSE mount (fuse_nodes.c)

/// Opens a FUSE node with O_PATH. The directory is any directory of the mount, open for reading. Requires
/// CAP_DAC_READ_SEARCH.
int linux_open_fuse_node(int directory, uint64_t node);
/// The size of a FUSE node: cached by the kernel, or from a GETATTR request with force_sync. The directory is
/// any directory of the mount, open for reading. Requires CAP_DAC_READ_SEARCH.
int linux_fuse_size(int directory, uint64_t node, bool force_sync, uint64_t *size);

// MARK: - Processors (processors.c)

/// The number of processors in the affinity mask of the calling thread.
int linux_usable_processors(void);
/// sched_getcpu(3).
int linux_current_processor(void);
/// The processor on which a thread of any process runs or last ran, by proc(5); -1 if it is not known.
int linux_processor_of(pid_t thread);
/// Binds the calling thread by sched_setaffinity(2) to a processor, or to all but that one. With -1 it may run where the
/// process's first thread may, which must not be bound.
void linux_bind(int processor, bool is_excluded);
/// Whether the calling thread is bound to processors.
bool linux_is_bound(void);
/// The calling thread's involuntary context switches, by getrusage(2).
long linux_preemptions(void);

// MARK: - Threads (threads.c)

/// gettid(2).
pid_t linux_gettid(void);
/// eventfd(2) with EFD_CLOEXEC | EFD_NONBLOCK.
int linux_eventfd(void);
/// epoll_create1(2) with EPOLL_CLOEXEC.
int linux_epoll(void);
/// epoll_ctl(2) with EPOLL_CTL_ADD: reports EPOLLPRI if is_urgent, or else EPOLLIN, by the bits.
int linux_epoll_add(int epoll, int file, bool is_urgent, uint64_t bits);
/// epoll_wait(2) with no timeout: the bits of up to two files that have events; all bits on an error.
uint64_t linux_epoll_poll(int epoll);
/// prctl(2) with PR_SET_NAME; names are truncated to 15 bytes.
void linux_name_thread(const char *name);
/// Gives the calling thread the lowest priority of its policy by setpriority(2): nice 19.
void linux_lower_priority(void);
/// sched_yield(2).
void linux_yield(void);
/// Requests the minimum scheduler slice for the calling thread by sched_setattr(2), so that it preempts threads with
/// longer slices when it wakes (Linux 6.12).
void linux_set_short_slice(void);
/// Sets the calling thread's policy: SCHED_FIFO with the lowest priority, which its children do not inherit, or
/// SCHED_OTHER. Does nothing if the thread has it already, and no more once it was refused: without CAP_SYS_NICE.
void linux_set_urgent(bool is_urgent);

// MARK: - Signals (signals.c)

/// Installs an empty signal handler without SA_RESTART.
int linux_install_interrupt_handler(int signal);
/// signalfd(2) with SFD_CLOEXEC | SFD_NONBLOCK.
int linux_signalfd(const sigset_t *signals);
/// The next signal of a signalfd; 0 without any.
int linux_next_signal(int file);
/// Sends SIGTERM, SIGINT and SIGHUP that other processes send to this one to the process whose ID is there, and keeps the
/// last one in `pending` while that is 0.
void linux_forward_signals(volatile pid_t *receiver, volatile int *pending);
/// Undoes linux_forward_signals in a child.
void linux_stop_forwarding_signals(void);

// MARK: - Renames (renames.c)

/// The arguments of a rename(2), renameat(2) or renameat2(2).
struct linux_rename {
  char from[4096];
  char to[4096];
  /// `AT_FDCWD` or a descriptor of the process.
  int from_directory;
  int to_directory;
  unsigned flags;
};
/// The rename in which a thread of any process waits. `false` if it waits in another call, or may not be examined as
/// ptrace(2) demands it. The thread's process can change the paths meanwhile.
bool linux_rename_in_progress(pid_t thread, struct linux_rename *rename);

// MARK: - Processes (processes.c)

/// The arguments of main(), ended by NULL, as the C library hands them to constructors. NULL with another C library than
/// glibc.
char **linux_arguments(void);
/// unshare(2) with CLONE_FILES.
int linux_unshare_files(void);
/// Makes the kernel's table of open files as large as RLIMIT_NOFILE allows, but no larger than `most` entries of 8 bytes.
///
/// While several threads share the table, the kernel waits for an RCU grace period each time that it doubles it, and so
/// does each thread that opens a file meanwhile: 10 ms and more. Call it while nothing shares the table. A fork copies only
/// the part in use. It does nothing if standard input is closed.
void linux_reserve_files(unsigned most);
/// fork(2), which Swift does not import.
pid_t linux_fork(void);
/// Forks a child that shares the table of open files with its parent (CLONE_FILES): what it opens stays open after its
/// death, and what it closes is closed in both. The process must be single-threaded. ENOSYS if the kernel does not tell
/// where the C library keeps the thread's ID (CONFIG_CHECKPOINT_RESTORE).
pid_t linux_fork_sharing_files(void);
/// A system call without which `linux_fork_sharing_files` fails here, as where a container forbids it: its name, and errno
/// as it answers. NULL if there is none. Nothing is forked.
const char *linux_obstacle_to_sharing_files(void);
/// prctl(2) with PR_SET_PDEATHSIG: the signal is sent when the thread that forked this process ends.
int linux_signal_at_end_of_parent(int signal);
/// Whether a child process has ended. `status`, which may be NULL, is set to how, as wait(2) has it. The child stays a
/// zombie: reaping it can take 30 ms.
bool linux_has_ended(pid_t child, int *status);
/// pidfd_open(2): a descriptor that is readable once the process has ended.
int linux_open_process(pid_t process);
/// pidfd_send_signal(2) of SIGKILL.
int linux_kill_process(int process);
/// Forks a child whose parent is init, or the nearest subreaper: 0 in the child, 1 in the caller, -1 on failure.
int linux_fork_detached(void);
/// fexecve(3) with the present environment. The file may be open with O_PATH. It stays open, since the interpreter of a
/// script opens it by its number.
int linux_execute(int file, char *const arguments[]);
/// posix_spawn_file_actions_addclosefrom_np(3).
int linux_spawn_close_from(void *actions, int file);
/// fork(2). The child's standard output is the descriptor, it has no other open files, and it dies with its parent
/// (PR_SET_PDEATHSIG). The process must be single-threaded.
pid_t linux_fork_writing_to(int output);

// MARK: - Reaping dead children (reaper.c)

/// Starts a thread, if possible, that reaps the dead children, but for `current`: reaping takes as long as it takes the
/// kernel to forget what other programs have looked up of the dead in `/proc`. It has no file open, and handles no signal.
void linux_start_reaper(volatile pid_t *current, volatile int *status);
/// Has that thread reap what is dead, or reaps it at once where there is none. The status of the child `recorded` goes to `status`.
void linux_reap_dead(pid_t recorded);

// MARK: - Memory (memory.c)

/// mallopt(3) with M_ARENA_MAX.
void linux_limit_arenas(int count);
/// Drops the pages of programs and libraries that are only read; they are read again when they are needed.
void linux_drop_code(void);

// MARK: - Locks in shared memory (shared_locks.c)

/// A lock in shared memory that outlives its owner.
enum linux_lock_result { linux_lock_free, linux_lock_of_dead_owner, linux_lock_failed };

/// The size of the lock in bytes.
size_t linux_lock_size(void);
int linux_lock_initialize(void *lock);
/// Waits for the lock, for as many milliseconds, or without end if these are negative; the caller owns it then, unless
/// the result is linux_lock_failed.
enum linux_lock_result linux_lock_acquire(void *lock, int milliseconds);
int linux_lock_release(void *lock);

// MARK: - Credentials (credentials.c)

/// Whether linux_act_as has the capabilities that it needs.
bool linux_can_act_as_others(void);
/// setfsuid(2) and setfsgid(2) for the calling thread, which keeps its capabilities (SECBIT_NO_SETUID_FIXUP).
int linux_act_as(uid_t user, gid_t group);
/// Undoes linux_act_as. Keeps errno. Does nothing if the thread acts as itself.
void linux_act_as_self(void);
/// Gives up CAP_SYS_RESOURCE for the calling thread and those that it starts, until execve(2).
int linux_keep_to_limits(void);

/// What linux_restrict took from the calling thread.
struct linux_restriction {
  uint32_t capabilities;
  int group_count;
  gid_t *groups;
};
/// Takes CAP_FSETID, CAP_SYS_RESOURCE and the supplementary groups from the calling thread.
int linux_restrict(struct linux_restriction *taken);
/// Gives them back.
void linux_unrestrict(struct linux_restriction *taken);

// MARK: - Leases (leases.c)

/// Whether a file is open for writing, or mapped so, anywhere: tries to take a lease (F_SETLEASE), and gives it back.
/// - Parameter file: open for reading only.
/// - Returns: -1 where leases are impossible.
int linux_is_open_for_writing(int file);

// MARK: - Packets with descriptors (packets.c)

/// sendmsg(2) with MSG_NOSIGNAL of a packet and, unless it is negative, a descriptor (SCM_RIGHTS).
ssize_t linux_send_packet(int socket, const void *bytes, size_t count, int file);
/// recvmsg(2) of a packet. `file` is set to its descriptor, which is closed on exec, or to -1; 0 at the end.
ssize_t linux_receive_packet(int socket, void *bytes, size_t size, int *file);

// MARK: - Connections of this computer (connections.c)

/// The user ID of the process that has made a connected IPv4 socket, by the socket's address and port and those of the other
/// end, all in network order (sock_diag(7)).
/// - Returns: 0; -1 with errno: ENOENT without such a socket, ENOTCONN if it is being closed.
int linux_tcp_owner(uint32_t address, uint16_t port, uint32_t other_address, uint16_t other_port, uint32_t *user);

#endif
