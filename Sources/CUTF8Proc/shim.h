// utf8proc, loaded on demand: only mounts with case=insensitive need it.
#ifndef BUNDLEFS_CUTF8PROC_SHIM_H
#define BUNDLEFS_CUTF8PROC_SHIM_H

#include <dlfcn.h>
#include <utf8proc.h>

struct bundlefs_utf8proc {
  __typeof__(&utf8proc_decompose) decompose;
  __typeof__(&utf8proc_reencode) reencode;
};

// Returns 0 if the library is not installed or lacks a function.
static inline int bundlefs_utf8proc_load(struct bundlefs_utf8proc *library) {
  void *handle = dlopen("libutf8proc.so.2", RTLD_NOW | RTLD_LOCAL);
  // Since utf8proc 2.9, which differs in a struct that is not used here.
  if (!handle) handle = dlopen("libutf8proc.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
  library->decompose = (__typeof__(library->decompose))dlsym(handle, "utf8proc_decompose");
  library->reencode = (__typeof__(library->reencode))dlsym(handle, "utf8proc_reencode");
  return library->decompose && library->reencode;
}

// Options as plain numbers: Swift does not import the combination of the enumeration's flags.
static const int bundlefs_utf8proc_nfd = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
static const int bundlefs_utf8proc_folded_nfd = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD;

#endif
