#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool linux_can_act_as_others(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_SETPCAP;
  return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective & needed) == needed;
}

int linux_keep_to_limits(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) != 0) return -1;
  sets[0].effective &= ~(1U << CAP_SYS_RESOURCE);
  return syscall(SYS_capset, &header, sets);
}

// Changed credentials reset both: prctl(2), PR_SET_DUMPABLE and PR_SET_PDEATHSIG.
static _Atomic int dumpable = -1;
static _Thread_local int signal_at_end_of_parent;

static void restore_process_state(void) {
  if (dumpable == 1) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (signal_at_end_of_parent != 0) prctl(PR_SET_PDEATHSIG, signal_at_end_of_parent, 0, 0, 0);
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

static int change_capabilities(uint32_t removed, uint32_t added, uint32_t *former) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) != 0) return -1;
  if (former != NULL) *former = sets[0].effective;
  sets[0].effective = (sets[0].effective & ~removed) | added;
  return (int)syscall(SYS_capset, &header, sets);
}

int linux_restrict(struct linux_restriction *taken) {
  const uint32_t restricted = 1U << CAP_FSETID | 1U << CAP_SYS_RESOURCE;
  uint32_t former;
  int count = getgroups(0, NULL);
  if (count < 0) return -1;
  taken->groups = NULL;
  if (count > 0) {
    taken->groups = calloc((size_t)count, sizeof(gid_t));
    if (taken->groups == NULL) return -1;
    count = getgroups(count, taken->groups);
    // The library's function would change all threads.
    if (count < 0 || syscall(SYS_setgroups, 0, NULL) != 0) goto failed;
  }
  taken->group_count = count;
  if (change_capabilities(restricted, 0, &former) != 0) {
    if (count > 0) syscall(SYS_setgroups, count, taken->groups);
    goto failed;
  }
  taken->capabilities = former & restricted;
  return 0;
failed:
  free(taken->groups);
  return -1;
}

void linux_unrestrict(struct linux_restriction *taken) {
  int saved = errno;
  if (taken->capabilities != 0) change_capabilities(0, taken->capabilities, NULL);
  if (taken->group_count > 0) syscall(SYS_setgroups, taken->group_count, taken->groups);
  free(taken->groups);
  errno = saved;
}
