// libbz2, whose header needs that of stdio.
#ifndef BUNDLEFS_CBZIP2_SHIM_H
#define BUNDLEFS_CBZIP2_SHIM_H

#include <stdio.h>

#include <bzlib.h>

#endif
