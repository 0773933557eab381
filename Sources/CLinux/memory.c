#define _GNU_SOURCE
#include "CLinux.h"

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

void linux_limit_arenas(int count) { mallopt(M_ARENA_MAX, count); }

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
