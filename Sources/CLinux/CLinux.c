#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(linux_O_PATH == O_PATH, "value on this architecture");
_Static_assert(linux_AT_EMPTY_PATH == AT_EMPTY_PATH, "value on this architecture");
_Static_assert(linux_UTIME_NOW == UTIME_NOW && linux_UTIME_OMIT == UTIME_OMIT, "values on this architecture");
_Static_assert(linux_SEEK_DATA == SEEK_DATA && linux_SEEK_HOLE == SEEK_HOLE, "values on this architecture");

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

int linux_openat(int directory, const char *path, int flags) { return openat(directory, path, flags); }

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

int linux_punch_hole(int file, int64_t offset, int64_t length) {
  return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

ssize_t linux_getdents64(int directory, void *buffer, size_t size) {
  return syscall(SYS_getdents64, directory, buffer, size);
}

static void path_of(int file, char path[static 32]) { snprintf(path, 32, "/proc/self/fd/%d", file); }

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

int linux_device(int file, uint64_t *device) {
  struct statx x;
  int result = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x);
  if (result == 0)
    *device = makedev(x.stx_dev_major, x.stx_dev_minor);
  return result;
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

_Thread_local struct linux_thread_state linux_thread;

struct linux_thread_state linux_read_thread(const struct linux_thread_state *thread) {
  return (struct linux_thread_state){
      .request = __atomic_load_n(&thread->request, __ATOMIC_RELAXED),
      .caller = __atomic_load_n(&thread->caller, __ATOMIC_RELAXED),
      .layer = __atomic_load_n(&thread->layer, __ATOMIC_RELAXED),
      .calls = __atomic_load_n(&thread->calls, __ATOMIC_RELAXED),
  };
}

pid_t linux_gettid(void) { return (pid_t)syscall(SYS_gettid); }

int linux_unmount(const char *path, bool lazily) {
  return umount2(path, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0));
}

int linux_abort_mount(const char *path) { return umount2(path, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW); }

int linux_detach(int root) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", root);
  return umount2(path, MNT_FORCE | MNT_DETACH);
}

int linux_unshare_files(void) { return unshare(CLONE_FILES); }

void linux_reserve_files(unsigned most) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  int last = (int)(limit.rlim_cur < most ? limit.rlim_cur : most) - 1;
  int file = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, last);
  if (file >= 0)
    close(file);
}

int linux_enter_mount_namespace(int file) { return setns(file, CLONE_NEWNS); }

static void ignore(int signal) { (void)signal; }

int linux_install_interrupt_handler(int signal) {
  struct sigaction action = {.sa_handler = ignore};
  sigemptyset(&action.sa_mask);
  return sigaction(signal, &action, NULL);
}

int linux_ioctl(int file, unsigned long command, void *argument) { return ioctl(file, command, argument); }

int linux_signalfd(const sigset_t *signals) { return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK); }

int linux_next_signal(int file) {
  struct signalfd_siginfo info;
  return read(file, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int linux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void linux_lower_priority(void) { setpriority(PRIO_PROCESS, linux_gettid(), 19); }

void linux_yield(void) { sched_yield(); }

void linux_set_short_slice(void) {
  // Version 0 of struct sched_attr, which glibc 2.36 does not declare.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes;
  long size = syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0);
  if (size != 0 || attributes.policy != 0)
    return;
  attributes.size = sizeof attributes;
  // In nanoseconds; the minimum.
  attributes.runtime = 100 * 1000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void linux_set_urgent(bool is_urgent) {
  static _Thread_local bool was_urgent, was_refused;
  if (is_urgent == was_urgent || was_refused)
    return;
  struct sched_param parameters = {.sched_priority = is_urgent ? sched_get_priority_min(SCHED_FIFO) : 0};
  int policy = is_urgent ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER | SCHED_RESET_ON_FORK;
  was_refused = sched_setscheduler(0, policy, &parameters) != 0;
  was_urgent = is_urgent && !was_refused;
}

void linux_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

uint64_t linux_makedev(uint32_t major, uint32_t minor) { return makedev(major, minor); }
uint32_t linux_major(uint64_t device) { return major(device); }
uint32_t linux_minor(uint64_t device) { return minor(device); }

pid_t linux_fork(void) { return fork(); }

pid_t linux_fork_sharing_files(void) {
  // What fork(3) does beside the system call, as far as a single thread needs it: the C library reads the thread's ID
  // from memory, and the kernel finds the thread's robust locks by a list that no child inherits.
  int *thread = NULL;
  void *robust = NULL;
  size_t size = 0;
  if (prctl(PR_GET_TID_ADDRESS, &thread, 0, 0, 0) != 0 || thread == NULL ||
      syscall(SYS_get_robust_list, 0, &robust, &size) != 0) {
    errno = ENOSYS;
    return -1;
  }
  struct clone_args arguments = {
      .flags = CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
      .child_tid = (uintptr_t)thread,
      .exit_signal = SIGCHLD,
  };
  pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0)
    syscall(SYS_set_robust_list, robust, size);
  return child;
}

int linux_open_process(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int linux_kill_process(int process) { return (int)syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0); }

int linux_fork_detached(void) {
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    pid_t grandchild = fork();
    if (grandchild != 0) _exit(grandchild < 0);
    return 0;
  }
  int status = 0;
  pid_t ended;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
  // Another thread may have reaped it, in which case a failed fork shows by the absence of the grandchild alone.
  if (ended == child && status != 0) {
    errno = EAGAIN;
    return -1;
  }
  return 1;
}

int linux_execute(int file, char *const arguments[]) {
  if (fcntl(file, F_SETFD, 0) != 0) return -1;
  return fexecve(file, arguments, environ);
}

int linux_spawn_close_from(void *actions, int file) {
  return posix_spawn_file_actions_addclosefrom_np(actions, file);
}

int linux_signal_at_end_of_parent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0); }

static const int forwarded_signals[] = {SIGTERM, SIGINT, SIGHUP};
static volatile pid_t *signal_receiver;
static volatile int *pending_signal;

static void forward_signal(int signal, siginfo_t *info, void *context) {
  (void)context;
  // A terminal sends its signals to both.
  if (info->si_code > 0)
    return;
  int saved = errno;
  if (*signal_receiver == 0)
    *pending_signal = signal;
  else
    kill(*signal_receiver, signal);
  errno = saved;
}

void linux_forward_signals(volatile pid_t *receiver, volatile int *pending) {
  signal_receiver = receiver;
  pending_signal = pending;
  struct sigaction action = {.sa_sigaction = forward_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  for (size_t i = 0; i < sizeof forwarded_signals / sizeof *forwarded_signals; i++)
    sigaction(forwarded_signals[i], &action, NULL);
}

void linux_stop_forwarding_signals(void) {
  for (size_t i = 0; i < sizeof forwarded_signals / sizeof *forwarded_signals; i++)
    signal(forwarded_signals[i], SIG_DFL);
}

bool linux_has_ended(pid_t child, int *status) {
  siginfo_t information = {0};
  if (waitid(P_PID, (id_t)child, &information, WEXITED | WNOHANG | WNOWAIT) != 0 || information.si_pid == 0)
    return false;
  if (!status)
    return true;
  int number = information.si_status;
  *status = information.si_code == CLD_EXITED ? W_EXITCODE(number, 0)
            : information.si_code == CLD_DUMPED ? W_EXITCODE(0, number) | WCOREFLAG
                                                : W_EXITCODE(0, number);
  return true;
}

static int drop_segments(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  uintptr_t page = *(uintptr_t *)data;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0)
      continue;
    uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
    uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    madvise((void *)start, end - start, MADV_DONTNEED);
  }
  return 0;
}

void linux_drop_code(void) {
  // The first call of a function reads the symbol tables of all libraries: not later, when the caller waits.
  pthread_mutex_t unused = PTHREAD_MUTEX_INITIALIZER;
  if (pthread_mutex_lock(&unused) == 0) pthread_mutex_unlock(&unused);
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  dl_iterate_phdr(drop_segments, &page);
}

size_t linux_lock_size(void) { return sizeof(pthread_mutex_t); }

int linux_lock_initialize(void *lock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  int error = pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return error;
}

static int lock_within(pthread_mutex_t *lock, int milliseconds) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += milliseconds / 1000;
  end.tv_nsec += milliseconds % 1000 * 1000000L;
  if (end.tv_nsec >= 1000000000L) {
    end.tv_sec += 1;
    end.tv_nsec -= 1000000000L;
  }
  return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &end);
}

enum linux_lock_result linux_lock_acquire(void *lock, int milliseconds) {
  int error = milliseconds < 0 ? pthread_mutex_lock(lock) : lock_within(lock, milliseconds);
  if (error == EOWNERDEAD)
    pthread_mutex_consistent(lock);
  return error == 0 ? linux_lock_free : error == EOWNERDEAD ? linux_lock_of_dead_owner : linux_lock_failed;
}

int linux_lock_release(void *lock) { return pthread_mutex_unlock(lock); }

int linux_pipe(int *ends) { return pipe2(ends, O_CLOEXEC); }

pid_t linux_fork_writing_to(int output) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child != 0) return child;
  int null = open("/dev/null", O_RDWR);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || null < 0 ||
      dup2(output, STDOUT_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 ||
      dup2(null, STDERR_FILENO) < 0)
    _exit(1);
  closefrom(STDERR_FILENO + 1);
  return 0;
}

int linux_usable_processors(void) {
  cpu_set_t set;
  // Fails where the kernel has more processors than the set has bits.
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int linux_current_processor(void) { return sched_getcpu(); }

int linux_processor_of(pid_t thread) {
  char text[1024];
  snprintf(text, sizeof text, "/proc/%d/stat", thread);
  int file = open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return -1;
  ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  text[count > 0 ? count : 0] = 0;
  // The name, in parentheses, may contain anything; the third field follows it.
  char *field = strrchr(text, ')');
  for (int number = 2; field && number < 39; number++) field = strchr(field + 1, ' ');
  return field ? atoi(field + 1) : -1;
}

static _Thread_local bool is_bound;

void linux_bind(int processor, bool is_excluded) {
  cpu_set_t set;
  // The first thread is never bound.
  if (sched_getaffinity(getpid(), sizeof set, &set) != 0)
    return;
  is_bound = processor >= 0;
  if (is_bound && is_excluded) {
    CPU_CLR(processor, &set);
  } else if (is_bound) {
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

bool linux_is_bound(void) { return is_bound; }

long linux_preemptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

void linux_limit_arenas(int count) { mallopt(M_ARENA_MAX, count); }

int linux_create(int directory, const char *name, mode_t mode) {
  return openat(directory, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
}

int linux_create_unnamed(int directory, bool is_linkable) {
  return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | (is_linkable ? 0 : O_EXCL), 0600);
}

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

int linux_resize(int file, int64_t size) {
  if (ftruncate(file, size) == 0) return 0;
  // EINVAL and EBADF: the descriptor is not open for writing.
  if (size < 0 || (errno != EINVAL && errno != EBADF)) return -1;
  char path[32];
  path_of(file, path);
  return truncate(path, size);
}

int linux_setxattr(const char *path, const char *name, const void *value, size_t size, int flags) {
  return setxattr(path, name, value, size, flags);
}

int linux_removexattr(const char *path, const char *name) { return removexattr(path, name); }

int linux_allocate(int file, int mode, int64_t offset, int64_t count) {
  return fallocate(file, mode, offset, count);
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

bool linux_can_act_as_others(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_SETPCAP;
  return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective & needed) == needed;
}

// Changed credentials reset both: prctl(2), PR_SET_DUMPABLE and PR_SET_PDEATHSIG.
static _Atomic int dumpable = -1;
static _Thread_local int signal_at_end_of_parent;

static void restore_process_state(void) {
  if (dumpable == 1) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (signal_at_end_of_parent != 0) prctl(PR_SET_PDEATHSIG, signal_at_end_of_parent, 0, 0, 0);
}

int linux_keep_to_limits(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) != 0) return -1;
  sets[0].effective &= ~(1U << CAP_SYS_RESOURCE);
  return syscall(SYS_capset, &header, sets);
}

// As whom the calling thread accesses files, if not as the process's user.
static _Thread_local struct {
  bool is_set;
  uid_t user;
  gid_t group;
} acting;

int linux_act_as(uid_t user, gid_t group) {
  static _Thread_local bool keeps_capabilities;
  if (acting.is_set && acting.user == user && acting.group == group) return 0;
  if (!keeps_capabilities) {
    int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
    if (bits < 0 || prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0) != 0) return -1;
    keeps_capabilities = true;
  }
  int unknown = -1;
  atomic_compare_exchange_strong(&dumpable, &unknown, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
  prctl(PR_GET_PDEATHSIG, &signal_at_end_of_parent, 0, 0, 0);
  setfsgid(group);
  setfsuid(user);
  acting.is_set = true;
  acting.user = user;
  acting.group = group;
  restore_process_state();
  return 0;
}

void linux_act_as_self(void) {
  if (!acting.is_set) return;
  int saved = errno;
  setfsuid(geteuid());
  setfsgid(getegid());
  acting.is_set = false;
  restore_process_state();
  errno = saved;
}
