// ISA-L, loaded on demand, if it was installed when this was compiled.
#ifndef BUNDLEFS_CISAL_SHIM_H
#define BUNDLEFS_CISAL_SHIM_H

#include <stddef.h>
#include <stdint.h>

struct bundlefs_isal {
  void (*inflate_init)(void *state);
  int (*inflate)(void *state);
  // Like zlib's function, of which the first value is also 0.
  uint32_t (*crc32)(uint32_t former, const uint8_t *bytes, uint64_t count);
};

// Input and output of a call of bundlefs_isal_inflate, which advances them.
struct bundlefs_isal_buffers {
  const uint8_t *in;
  uint8_t *out;
  uint32_t in_count;
  uint32_t out_count;
};

#if __has_include(<isa-l/igzip_lib.h>)
#include <dlfcn.h>
#include <isa-l/igzip_lib.h>

// The state has no pointer to itself: it can be copied.
static inline size_t bundlefs_isal_state_size(void) { return sizeof(struct inflate_state); }

// Returns 0 if the library is not installed or lacks a function.
static inline int bundlefs_isal_load(struct bundlefs_isal *library) {
  void *handle = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
  library->inflate_init = (void (*)(void *))dlsym(handle, "isal_inflate_init");
  library->inflate = (int (*)(void *))dlsym(handle, "isal_inflate");
  library->crc32 = (uint32_t(*)(uint32_t, const uint8_t *, uint64_t))dlsym(handle, "crc32_gzip_refl");
  return library->inflate_init && library->inflate && library->crc32;
}

// Returns 1 at the end of the stream, 0 before, and a negative number for a damaged one.
static inline int bundlefs_isal_inflate(
    const struct bundlefs_isal *library, void *memory, struct bundlefs_isal_buffers *buffers) {
  struct inflate_state *state = (struct inflate_state *)memory;
  state->next_in = (uint8_t *)buffers->in;
  state->avail_in = buffers->in_count;
  state->next_out = buffers->out;
  state->avail_out = buffers->out_count;
  int result = library->inflate(state);
  buffers->in = state->next_in;
  buffers->in_count = state->avail_in;
  buffers->out = state->next_out;
  buffers->out_count = state->avail_out;
  if (result < 0) return result;
  return state->block_state == ISAL_BLOCK_FINISH;
}

#else

static inline size_t bundlefs_isal_state_size(void) { return 0; }
static inline int bundlefs_isal_load(struct bundlefs_isal *library) { return 0; }
static inline int bundlefs_isal_inflate(
    const struct bundlefs_isal *library, void *memory, struct bundlefs_isal_buffers *buffers) {
  return -1;
}

#endif
#endif
