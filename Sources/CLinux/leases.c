#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>

int linux_is_open_for_writing(int file) {
  // The kernel refuses a lease for reading while the file has a writer: check_conflicting_open in fs/locks.c.
  if (fcntl(file, F_SETLEASE, F_RDLCK) == 0) {
    fcntl(file, F_SETLEASE, F_UNLCK);
    return 0;
  }
  return errno == EAGAIN ? 1 : -1;
}
