// zlib.
#ifndef BUNDLEFS_CZLIB_SHIM_H
#define BUNDLEFS_CZLIB_SHIM_H

#include <zlib.h>

#endif
