// libzip and zlib.
#ifndef BUNDLEFS_CZIP_SHIM_H
#define BUNDLEFS_CZIP_SHIM_H

#include <zip.h>
#include <zlib.h>

#endif
