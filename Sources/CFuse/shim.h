// libfuse's low-level API, at the version whose functions are used.
#ifndef BUNDLEFS_CFUSE_SHIM_H
#define BUNDLEFS_CFUSE_SHIM_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#endif
