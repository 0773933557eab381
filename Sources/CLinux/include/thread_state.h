// The state of a thread that processes requests (threads.c). Include CLinux.h instead.
#ifndef BUNDLEFS_THREAD_STATE_H
#define BUNDLEFS_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// What a thread is doing, and what it may wait for. Only the thread itself writes it; a supervisor reads `request`,
/// `caller`, `layer` and `calls`, without a lock.
struct linux_thread_state {
  /// The `unique` of the FUSE request that the thread processes; 0 for none.
  uint64_t request;
  /// The thread that made the request.
  pid_t caller;
  /// The layer that the present call reads, plus 1; 0 outside of such calls.
  uint32_t layer;
  /// The number of calls on layers begun so far.
  uint64_t calls;
  /// The layer for which the present request was put off, plus 1; 0 for none.
  uint32_t deferred;
  /// A value of LayerAccess.
  uint8_t access;
  /// Whether the thread can put a request off.
  bool defers_requests;
  /// Whether the present request was processed before.
  bool is_repeating;
  /// Whether the present request was put off instead of answered.
  bool has_deferred;
  /// Whether the thread may notify the kernel although it owes a reply.
  bool may_notify;
  /// The lock that the thread has taken last and still holds, of Swift's type LockCheck; only in debug builds.
  void *held_lock;
};

extern _Thread_local struct linux_thread_state linux_thread;

static inline struct linux_thread_state *linux_current_thread(void) { return &linux_thread; }

/// Records that a call on a layer begins; returns what to restore after it.
static inline uint32_t linux_begin_call(uint32_t layer) {
  uint32_t former = linux_thread.layer;
  __atomic_store_n(&linux_thread.layer, layer, __ATOMIC_RELAXED);
  __atomic_store_n(&linux_thread.calls, linux_thread.calls + 1, __ATOMIC_RELAXED);
  return former;
}

static inline void linux_end_call(uint32_t former) {
  __atomic_store_n(&linux_thread.layer, former, __ATOMIC_RELAXED);
}

static inline void linux_begin_request(uint64_t request, pid_t caller) {
  linux_thread.deferred = 0;
  linux_thread.has_deferred = false;
  __atomic_store_n(&linux_thread.caller, caller, __ATOMIC_RELAXED);
  __atomic_store_n(&linux_thread.request, request, __ATOMIC_RELAXED);
}

/// Reads another thread's state.
struct linux_thread_state linux_read_thread(const struct linux_thread_state *thread);

#endif
