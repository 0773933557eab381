#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
