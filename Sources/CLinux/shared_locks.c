#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

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
