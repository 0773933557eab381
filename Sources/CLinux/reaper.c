#define _GNU_SOURCE
#include "CLinux.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
  sem_t work, started;
  volatile pid_t *current;
  volatile int *status;
  _Atomic(pid_t) recorded;
  bool runs;
} reaper;

/// The present child is the youngest one, so that the dead before it come first. While there is none, the next one may
/// be about to be recorded.
static void reap(void) {
  siginfo_t dead = {0};
  while (waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) == 0 && dead.si_pid != 0) {
    pid_t current = *reaper.current;
    if (current == 0 || current == dead.si_pid) return;
    int status = 0;
    if (waitpid(dead.si_pid, &status, WNOHANG) == dead.si_pid && dead.si_pid == reaper.recorded)
      *reaper.status = status;
    dead.si_pid = 0;
  }
}

static void *work(void *unused) {
  (void)unused;
  // Otherwise what the process closes would stay open here, once it shares no table of files with this thread.
  reaper.runs = close_range(0, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
  sem_post(&reaper.started);
  while (reaper.runs) {
    if (sem_wait(&reaper.work) == 0) reap();
  }
  return NULL;
}

void linux_start_reaper(volatile pid_t *current, volatile int *status) {
  reaper.current = current;
  reaper.status = status;
  reaper.runs = false;
  sem_init(&reaper.work, 0, 0);
  sem_init(&reaper.started, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, work, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error == 0) {
    while (sem_wait(&reaper.started) != 0) {}
  }
}

void linux_reap_dead(pid_t recorded) {
  reaper.recorded = recorded;
  if (reaper.runs)
    sem_post(&reaper.work);
  else
    reap();
}
