// libarchive, loaded on demand: with the libraries that it needs it takes 10 ms at the start of a program.
#ifndef BUNDLEFS_CARCHIVE_SHIM_H
#define BUNDLEFS_CARCHIVE_SHIM_H

#include <archive.h>
#include <archive_entry.h>
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
  __typeof__(&archive_read_support_format_tar) read_support_format_tar;
  __typeof__(&archive_read_support_format_7zip) read_support_format_7zip;
  __typeof__(&archive_read_support_format_raw) read_support_format_raw;
  __typeof__(&archive_read_support_filter_bzip2) read_support_filter_bzip2;
  __typeof__(&archive_read_support_filter_xz) read_support_filter_xz;
  __typeof__(&archive_read_support_filter_zstd) read_support_filter_zstd;
  __typeof__(&archive_format) format;
  // NULL in a library that lacks them.
  __typeof__(&archive_read_support_format_cpio) read_support_format_cpio;
  __typeof__(&archive_read_support_format_ar) read_support_format_ar;
  __typeof__(&archive_read_support_format_iso9660) read_support_format_iso9660;
  __typeof__(&archive_read_support_format_cab) read_support_format_cab;
  __typeof__(&archive_read_support_format_xar) read_support_format_xar;
  __typeof__(&archive_read_support_format_rar) read_support_format_rar;
  __typeof__(&archive_read_support_format_rar5) read_support_format_rar5;
  __typeof__(&archive_read_support_format_lha) read_support_format_lha;
  __typeof__(&archive_read_support_filter_lz4) read_support_filter_lz4;
  __typeof__(&archive_read_support_filter_lzip) read_support_filter_lzip;
  __typeof__(&archive_read_support_filter_lzma) read_support_filter_lzma;
  __typeof__(&archive_read_support_filter_lzop) read_support_filter_lzop;
  __typeof__(&archive_read_support_filter_compress) read_support_filter_compress;
  __typeof__(&archive_read_set_callback_data) read_set_callback_data;
  __typeof__(&archive_read_set_read_callback) read_set_read_callback;
  __typeof__(&archive_read_set_skip_callback) read_set_skip_callback;
  __typeof__(&archive_read_set_seek_callback) read_set_seek_callback;
  __typeof__(&archive_read_open1) read_open1;
  __typeof__(&archive_read_data_block) read_data_block;
  __typeof__(&archive_read_header_position) read_header_position;
  __typeof__(&archive_filter_bytes) filter_bytes;
  __typeof__(&archive_entry_pathname) entry_pathname;
  __typeof__(&archive_entry_pathname_utf8) entry_pathname_utf8;
  __typeof__(&archive_entry_hardlink) entry_hardlink;
  __typeof__(&archive_entry_hardlink_utf8) entry_hardlink_utf8;
  __typeof__(&archive_entry_symlink) entry_symlink;
  __typeof__(&archive_entry_symlink_utf8) entry_symlink_utf8;
  __typeof__(&archive_entry_size) entry_size;
  __typeof__(&archive_entry_filetype) entry_filetype;
  __typeof__(&archive_entry_perm) entry_perm;
  __typeof__(&archive_entry_rdev) entry_rdev;
  __typeof__(&archive_entry_uid) entry_uid;
  __typeof__(&archive_entry_gid) entry_gid;
  __typeof__(&archive_entry_xattr_reset) entry_xattr_reset;
  __typeof__(&archive_entry_xattr_next) entry_xattr_next;
  __typeof__(&archive_entry_mtime) entry_mtime;
  __typeof__(&archive_entry_mtime_nsec) entry_mtime_nsec;
  __typeof__(&archive_entry_sparse_reset) entry_sparse_reset;
  __typeof__(&archive_entry_is_data_encrypted) entry_is_data_encrypted;
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
  BUNDLEFS_LOAD(read_support_format_tar)
  BUNDLEFS_LOAD(read_support_format_7zip)
  BUNDLEFS_LOAD(read_support_format_raw)
  BUNDLEFS_LOAD(read_support_filter_bzip2)
  BUNDLEFS_LOAD(read_support_filter_xz)
  BUNDLEFS_LOAD(read_support_filter_zstd)
  BUNDLEFS_LOAD(read_set_callback_data)
  BUNDLEFS_LOAD(read_set_read_callback)
  BUNDLEFS_LOAD(read_set_skip_callback)
  BUNDLEFS_LOAD(read_set_seek_callback)
  BUNDLEFS_LOAD(read_open1)
  BUNDLEFS_LOAD(read_data_block)
  BUNDLEFS_LOAD(read_header_position)
  BUNDLEFS_LOAD(filter_bytes)
  BUNDLEFS_LOAD(entry_pathname)
  BUNDLEFS_LOAD(entry_pathname_utf8)
  BUNDLEFS_LOAD(entry_hardlink)
  BUNDLEFS_LOAD(entry_hardlink_utf8)
  BUNDLEFS_LOAD(entry_symlink)
  BUNDLEFS_LOAD(entry_symlink_utf8)
  BUNDLEFS_LOAD(entry_size)
  BUNDLEFS_LOAD(entry_filetype)
  BUNDLEFS_LOAD(entry_perm)
  BUNDLEFS_LOAD(entry_rdev)
  BUNDLEFS_LOAD(entry_uid)
  BUNDLEFS_LOAD(entry_gid)
  BUNDLEFS_LOAD(entry_xattr_reset)
  BUNDLEFS_LOAD(entry_xattr_next)
  BUNDLEFS_LOAD(entry_mtime)
  BUNDLEFS_LOAD(entry_mtime_nsec)
  BUNDLEFS_LOAD(entry_sparse_reset)
  BUNDLEFS_LOAD(entry_is_data_encrypted)
  BUNDLEFS_LOAD(format)
#undef BUNDLEFS_LOAD
#define BUNDLEFS_LOAD(name) library->name = (__typeof__(library->name))dlsym(handle, "archive_" #name);
  BUNDLEFS_LOAD(read_support_format_cpio)
  BUNDLEFS_LOAD(read_support_format_ar)
  BUNDLEFS_LOAD(read_support_format_iso9660)
  BUNDLEFS_LOAD(read_support_format_cab)
  BUNDLEFS_LOAD(read_support_format_xar)
  BUNDLEFS_LOAD(read_support_format_rar)
  BUNDLEFS_LOAD(read_support_format_rar5)
  BUNDLEFS_LOAD(read_support_format_lha)
  BUNDLEFS_LOAD(read_support_filter_lz4)
  BUNDLEFS_LOAD(read_support_filter_lzip)
  BUNDLEFS_LOAD(read_support_filter_lzma)
  BUNDLEFS_LOAD(read_support_filter_lzop)
  BUNDLEFS_LOAD(read_support_filter_compress)
#undef BUNDLEFS_LOAD
  return 1;
}

#endif
