// libfuse's low-level API, at the version whose functions are used.
#ifndef BUNDLEFS_CFUSE_SHIM_H
#define BUNDLEFS_CFUSE_SHIM_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <string.h>

/// The kernel's number of the open file that is polled, which no other open file gets. libfuse keeps it at the
/// start of the handle, and has no function that tells it.
static inline uint64_t bundlefs_poll_file(const struct fuse_pollhandle *handle) {
  uint64_t file;
  memcpy(&file, handle, sizeof file);
  return file;
}

#endif
