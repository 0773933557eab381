#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/// Reads a string of another process. No call reads beyond a page, since the next one need not be mapped.
static bool read_string(pid_t thread, uintptr_t address, char *buffer, size_t size) {
  const size_t page = 4096;
  for (size_t used = 0; used < size;) {
    size_t count = page - (address + used) % page;
    if (count > size - used)
      count = size - used;
    struct iovec local = {buffer + used, count}, remote = {(void *)(address + used), count};
    ssize_t read = process_vm_readv(thread, &local, 1, &remote, 1, 0);
    if (read <= 0)
      return false;
    if (memchr(buffer + used, 0, (size_t)read))
      return true;
    used += (size_t)read;
  }
  return false;
}

/// Whether a system call is renameat2(2).
static bool has_flags(long call) {
#if defined(__x86_64__)
  // That of 32-bit programs as well: no such number is a call of the other kind that takes a path.
  if (call == 353)
    return true;
#endif
  return call == SYS_renameat2;
}

/// Whether a system call is rename(2).
static bool has_two_paths(long call) {
#if defined(__x86_64__)
  return call == SYS_rename || call == 38;
#else
  (void)call;
  return false;
#endif
}

/// Whether a system call is renameat(2).
static bool has_directories(long call) {
#if defined(__x86_64__)
  if (call == 302)
    return true;
#endif
#ifdef SYS_renameat
  if (call == SYS_renameat)
    return true;
#endif
  return false;
}

bool linux_rename_in_progress(pid_t thread, struct linux_rename *rename) {
  char path[32], text[256];
  snprintf(path, sizeof path, "/proc/%d/syscall", thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0)
    return false;
  text[length] = 0;
  long call = -1;
  unsigned long values[5];
  if (sscanf(text, "%ld %lx %lx %lx %lx %lx", &call, &values[0], &values[1], &values[2], &values[3], &values[4]) != 6)
    return false;
  bool is_plain = has_two_paths(call);
  if (!is_plain && !has_directories(call) && !has_flags(call))
    return false;
  rename->from_directory = is_plain ? AT_FDCWD : (int)values[0];
  rename->to_directory = is_plain ? AT_FDCWD : (int)values[2];
  rename->flags = has_flags(call) ? (unsigned)values[4] : 0;
  return read_string(thread, values[is_plain ? 0 : 1], rename->from, sizeof rename->from) &&
         read_string(thread, values[is_plain ? 1 : 3], rename->to, sizeof rename->to);
}
