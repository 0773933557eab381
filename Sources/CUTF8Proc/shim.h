// utf8proc, loaded on demand: only mounts with case=insensitive need it.
#ifndef BUNDLEFS_CUTF8PROC_SHIM_H
#define BUNDLEFS_CUTF8PROC_SHIM_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

// What is used is declared here, so that its header need not be installed. Where it is, the compiler compares.
typedef ptrdiff_t (*bundlefs_utf8proc_decompose)(
    const uint8_t *text, ptrdiff_t length, int32_t *buffer, ptrdiff_t capacity, unsigned int options);
typedef ptrdiff_t (*bundlefs_utf8proc_reencode)(int32_t *buffer, ptrdiff_t length, unsigned int options);

struct bundlefs_utf8proc {
  bundlefs_utf8proc_decompose decompose;
  bundlefs_utf8proc_reencode reencode;
};

// Stable, decomposed; with case folded, too.
static const unsigned int bundlefs_utf8proc_nfd = 1 << 1 | 1 << 4;
static const unsigned int bundlefs_utf8proc_folded_nfd = 1 << 1 | 1 << 4 | 1 << 10;

#if __has_include(<utf8proc.h>)
#include <utf8proc.h>

_Static_assert(__builtin_types_compatible_p(bundlefs_utf8proc_decompose, __typeof__(&utf8proc_decompose)), "decompose");
_Static_assert(__builtin_types_compatible_p(bundlefs_utf8proc_reencode, __typeof__(&utf8proc_reencode)), "reencode");
_Static_assert(UTF8PROC_STABLE == 1 << 1 && UTF8PROC_DECOMPOSE == 1 << 4 && UTF8PROC_CASEFOLD == 1 << 10, "options");
#endif

// Returns 0 if the library is not installed or lacks a function.
static inline int bundlefs_utf8proc_load(struct bundlefs_utf8proc *library) {
  void *handle = dlopen("libutf8proc.so.2", RTLD_NOW | RTLD_LOCAL);
  // Since utf8proc 2.9, which differs in a struct that is not used here.
  if (!handle) handle = dlopen("libutf8proc.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
  library->decompose = (bundlefs_utf8proc_decompose)dlsym(handle, "utf8proc_decompose");
  library->reencode = (bundlefs_utf8proc_reencode)dlsym(handle, "utf8proc_reencode");
  return library->decompose && library->reencode;
}

#endif
