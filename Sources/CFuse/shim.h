// The low-level API of libfuse 3.14.
#ifndef BUNDLEFS_CFUSE_SHIM_H
#define BUNDLEFS_CFUSE_SHIM_H

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <string.h>

/// The kernel's handle (kh) of the polled open file. It is the first member of libfuse's struct, which has no accessor.
static inline uint64_t bundlefs_poll_file(const struct fuse_pollhandle *handle) {
  uint64_t file;
  memcpy(&file, handle, sizeof file);
  return file;
}

#endif
