// libarchive, loaded on demand: with the libraries that it needs it takes 10 ms at the start of a program.
#ifndef BUNDLEFS_CARCHIVE_SHIM_H
#define BUNDLEFS_CARCHIVE_SHIM_H

#include <archive.h>
#include <dlfcn.h>

struct bundlefs_libarchive {
  __typeof__(&archive_read_new) read_new;
  __typeof__(&archive_read_free) read_free;
  __typeof__(&archive_read_support_format_zip_streamable) read_support_format_zip_streamable;
  __typeof__(&archive_read_set_option) read_set_option;
  __typeof__(&archive_read_add_passphrase) read_add_passphrase;
  __typeof__(&archive_read_open) read_open;
  __typeof__(&archive_read_next_header) read_next_header;
  __typeof__(&archive_read_data) read_data;
  __typeof__(&archive_error_string) error_string;
};

// Returns 0 if the library is not installed or lacks a function.
static inline int bundlefs_libarchive_load(struct bundlefs_libarchive *library) {
  void *handle = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
#define BUNDLEFS_LOAD(name) \
  if (!(library->name = (__typeof__(library->name))dlsym(handle, "archive_" #name))) return 0;
  BUNDLEFS_LOAD(read_new)
  BUNDLEFS_LOAD(read_free)
  BUNDLEFS_LOAD(read_support_format_zip_streamable)
  BUNDLEFS_LOAD(read_set_option)
  BUNDLEFS_LOAD(read_add_passphrase)
  BUNDLEFS_LOAD(read_open)
  BUNDLEFS_LOAD(read_next_header)
  BUNDLEFS_LOAD(read_data)
  BUNDLEFS_LOAD(error_string)
#undef BUNDLEFS_LOAD
  return 1;
}

#endif
