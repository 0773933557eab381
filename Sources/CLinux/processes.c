#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

#ifdef __GLIBC__
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
  (void)count;
  arguments = values;
}
#endif

char **linux_arguments(void) { return arguments; }

pid_t linux_fork(void) { return fork(); }

/// What the C library keeps of a thread and a child has to have as well.
struct thread_memory {
  int *id;
  void *robust;
  size_t size;
};

/// Returns the system call that is refused; NULL if none is.
static const char *find_thread_memory(struct thread_memory *memory) {
  *memory = (struct thread_memory){0};
  if (prctl(PR_GET_TID_ADDRESS, &memory->id, 0, 0, 0) != 0) return "prctl(2) with PR_GET_TID_ADDRESS";
  if (syscall(SYS_get_robust_list, 0, &memory->robust, &memory->size) != 0) return "get_robust_list(2)";
  return NULL;
}

const char *linux_obstacle_to_sharing_files(void) {
  struct thread_memory memory;
  const char *refused = find_thread_memory(&memory);
  if (refused) return refused;
  // Arguments of no size are invalid, which only a kernel that would make the call finds.
  if (syscall(SYS_clone3, NULL, (size_t)0) < 0 && errno != EINVAL) return "clone3(2)";
  return NULL;
}

pid_t linux_fork_sharing_files(void) {
  // What fork(3) does beside the system call, as far as a single thread needs it: the C library reads the thread's ID
  // from memory, and the kernel finds the thread's robust locks by a list that no child inherits.
  struct thread_memory memory;
  if (find_thread_memory(&memory) || memory.id == NULL) {
    errno = ENOSYS;
    return -1;
  }
  struct clone_args arguments = {
      .flags = CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
      .child_tid = (uintptr_t)memory.id,
      .exit_signal = SIGCHLD,
  };
  pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0)
    syscall(SYS_set_robust_list, memory.robust, memory.size);
  return child;
}

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

int linux_execute(int file, char *const arguments[]) {
  if (fcntl(file, F_SETFD, 0) != 0) return -1;
  return fexecve(file, arguments, environ);
}

int linux_spawn_close_from(void *actions, int file) {
  return posix_spawn_file_actions_addclosefrom_np(actions, file);
}

int linux_signal_at_end_of_parent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0); }

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

int linux_open_process(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int linux_kill_process(int process) { return (int)syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0); }

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
