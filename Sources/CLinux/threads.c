#define _GNU_SOURCE
#include "CLinux.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

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

void linux_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

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

int linux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
