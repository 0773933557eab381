// libzip.
#ifndef BUNDLEFS_CZIP_SHIM_H
#define BUNDLEFS_CZIP_SHIM_H

#include <zip.h>

#endif
