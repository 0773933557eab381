// The path by which calls that take none of our descriptors reach an open file.
#ifndef BUNDLEFS_DESCRIPTOR_PATH_H
#define BUNDLEFS_DESCRIPTOR_PATH_H

#include <stdio.h>

static inline void path_of(int file, char path[static 32]) { snprintf(path, 32, "/proc/self/fd/%d", file); }

#endif
