#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void ignore(int signal) { (void)signal; }

int linux_install_interrupt_handler(int signal) {
  struct sigaction action = {.sa_handler = ignore};
  sigemptyset(&action.sa_mask);
  return sigaction(signal, &action, NULL);
}

int linux_signalfd(const sigset_t *signals) { return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK); }

int linux_next_signal(int file) {
  struct signalfd_siginfo info;
  return read(file, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

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
