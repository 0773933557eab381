// libmicrohttpd, loaded on demand: only the command `ui` needs it, with the TLS library that it brings.
#ifndef BUNDLEFS_CMICROHTTPD_SHIM_H
#define BUNDLEFS_CMICROHTTPD_SHIM_H

#include <dlfcn.h>
#include <microhttpd.h>
#include <stdint.h>
#include <string.h>

struct bundlefs_microhttpd {
  // MHD_start_daemon and MHD_get_connection_info, whose types Swift cannot express.
  void (*start_daemon)(void);
  void (*get_connection_info)(void);
  __typeof__(&MHD_stop_daemon) stop_daemon;
  __typeof__(&MHD_lookup_connection_value) lookup_connection_value;
  __typeof__(&MHD_queue_response) queue_response;
  __typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
  __typeof__(&MHD_create_response_from_callback) create_response_from_callback;
  __typeof__(&MHD_add_response_header) add_response_header;
  __typeof__(&MHD_destroy_response) destroy_response;
};

// Returns 0 if the library is not installed or lacks a function.
static inline int bundlefs_microhttpd_load(struct bundlefs_microhttpd *library) {
  void *handle = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
#define BUNDLEFS_LOAD(name) \
  if (!(library->name = (__typeof__(library->name))dlsym(handle, "MHD_" #name))) return 0;
  BUNDLEFS_LOAD(start_daemon)
  BUNDLEFS_LOAD(stop_daemon)
  BUNDLEFS_LOAD(get_connection_info)
  BUNDLEFS_LOAD(lookup_connection_value)
  BUNDLEFS_LOAD(queue_response)
  BUNDLEFS_LOAD(create_response_from_buffer)
  BUNDLEFS_LOAD(create_response_from_callback)
  BUNDLEFS_LOAD(add_response_header)
  BUNDLEFS_LOAD(destroy_response)
#undef BUNDLEFS_LOAD
  return 1;
}

// Leaves percent-encoded bytes alone: the server decodes each component by itself, so that an encoded slash or NUL is seen.
static inline size_t bundlefs_microhttpd_keep(void *context, struct MHD_Connection *connection, char *text) {
  (void)context;
  (void)connection;
  return strlen(text);
}

struct bundlefs_microhttpd_limits {
  unsigned int connections;
  unsigned int timeout_seconds;
  size_t connection_memory;
};

struct bundlefs_microhttpd_callbacks {
  // Whether a connection is accepted.
  MHD_AcceptPolicyCallback accept;
  // When one has begun, and when it has ended.
  MHD_NotifyConnectionCallback connection;
  MHD_AccessHandlerCallback handle;
  MHD_RequestCompletedCallback complete;
  // Passed to all of them.
  void *context;
};

static inline const union MHD_ConnectionInfo *bundlefs_microhttpd_info(
    const struct bundlefs_microhttpd *library, struct MHD_Connection *connection, enum MHD_ConnectionInfoType type) {
  return ((__typeof__(&MHD_get_connection_info))library->get_connection_info)(connection, type);
}

// The address of the other end; NULL if it is unknown.
static inline const struct sockaddr *bundlefs_microhttpd_client(
    const struct bundlefs_microhttpd *library, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = bundlefs_microhttpd_info(library, connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : NULL;
}

// What MHD_NotifyConnectionCallback has kept for a connection; NULL for nothing.
static inline void *bundlefs_microhttpd_kept(
    const struct bundlefs_microhttpd *library, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = bundlefs_microhttpd_info(library, connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

// Starts a server with a thread for each connection on a listening socket, which it closes at the end. MHD_start_daemon
// has a variable number of arguments, which Swift cannot pass.
static inline struct MHD_Daemon *bundlefs_microhttpd_start(
    const struct bundlefs_microhttpd *library, int listener, const struct bundlefs_microhttpd_limits *limits,
    const struct bundlefs_microhttpd_callbacks *callbacks) {
  return ((__typeof__(&MHD_start_daemon))library->start_daemon)(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0,
      callbacks->accept, callbacks->context, callbacks->handle, callbacks->context, MHD_OPTION_LISTEN_SOCKET, listener,
      MHD_OPTION_CONNECTION_LIMIT, limits->connections, MHD_OPTION_CONNECTION_TIMEOUT, limits->timeout_seconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits->connection_memory, MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_UNESCAPE_CALLBACK, &bundlefs_microhttpd_keep, NULL, MHD_OPTION_NOTIFY_CONNECTION, callbacks->connection,
      callbacks->context, MHD_OPTION_NOTIFY_COMPLETED, callbacks->complete, callbacks->context, MHD_OPTION_END);
}

#endif
