// The files of the page that `bundlefs ui` serves, embedded in the program.
#ifndef BUNDLEFS_WEB_PAGE_H
#define BUNDLEFS_WEB_PAGE_H

#include <stddef.h>

struct bundlefs_page_file {
  const char *name;
  const char *type;
  const unsigned char *bytes;
  size_t count;
};

// Returns NULL beyond the last file.
const struct bundlefs_page_file *bundlefs_page_file(size_t index);

#endif
