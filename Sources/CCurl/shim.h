// libcurl, loaded on demand: only layers by URL need it, with the TLS library that it brings.
#ifndef BUNDLEFS_CCURL_SHIM_H
#define BUNDLEFS_CCURL_SHIM_H

#include <curl/curl.h>
#include <dlfcn.h>
#include <stddef.h>

struct bundlefs_curl {
  __typeof__(&curl_global_init) global_init;
  __typeof__(&curl_easy_init) easy_init;
  __typeof__(&curl_easy_cleanup) easy_cleanup;
  __typeof__(&curl_easy_reset) easy_reset;
  __typeof__(&curl_easy_perform) easy_perform;
  __typeof__(&curl_easy_strerror) easy_strerror;
  __typeof__(&curl_slist_append) slist_append;
  __typeof__(&curl_slist_free_all) slist_free_all;
  // curl_easy_setopt and curl_easy_getinfo, which have a variable number of arguments, as Swift cannot pass them.
  void (*easy_setopt)(void);
  void (*easy_getinfo)(void);
};

// Returns 0 if the library is not installed or lacks a function.
static inline int bundlefs_curl_load(struct bundlefs_curl *library) {
  void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!handle) handle = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
#define BUNDLEFS_LOAD(name) \
  if (!(library->name = (__typeof__(library->name))dlsym(handle, "curl_" #name))) return 0;
  BUNDLEFS_LOAD(global_init)
  BUNDLEFS_LOAD(easy_init)
  BUNDLEFS_LOAD(easy_cleanup)
  BUNDLEFS_LOAD(easy_reset)
  BUNDLEFS_LOAD(easy_perform)
  BUNDLEFS_LOAD(easy_strerror)
  BUNDLEFS_LOAD(slist_append)
  BUNDLEFS_LOAD(slist_free_all)
  BUNDLEFS_LOAD(easy_setopt)
  BUNDLEFS_LOAD(easy_getinfo)
#undef BUNDLEFS_LOAD
  return library->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

typedef size_t (*bundlefs_curl_data)(char *bytes, size_t size, size_t count, void *context);
typedef int (*bundlefs_curl_progress)(void *context, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

struct bundlefs_curl_request {
  const char *url;
  const struct curl_slist *headers;
  const char *user_agent;
  // Milliseconds.
  long connect_timeout;
  // Called with each header line and with each part of the body; another value than the count ends the request.
  bundlefs_curl_data header;
  bundlefs_curl_data body;
  // Called about once a second, and with each part; another value than 0 ends the request.
  bundlefs_curl_progress progress;
  void *context;
};

// Sets all options and does the request, by HTTP and HTTPS only. Redirects are not followed: libcurl would send the
// headers to the other server, too.
static inline CURLcode bundlefs_curl_perform(
    const struct bundlefs_curl *library, CURL *handle, const struct bundlefs_curl_request *request) {
  __typeof__(&curl_easy_setopt) set = (__typeof__(&curl_easy_setopt))library->easy_setopt;
  CURLcode result = CURLE_OK;
#define BUNDLEFS_SET(option, value) \
  if (result == CURLE_OK) result = set(handle, option, value);
  library->easy_reset(handle);
  BUNDLEFS_SET(CURLOPT_URL, request->url)
#if LIBCURL_VERSION_NUM >= 0x075500
  // The older option is a bit mask, which newer headers call deprecated.
  BUNDLEFS_SET(CURLOPT_PROTOCOLS_STR, "http,https")
#else
  BUNDLEFS_SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS))
#endif
  BUNDLEFS_SET(CURLOPT_FOLLOWLOCATION, 0L)
  BUNDLEFS_SET(CURLOPT_NOSIGNAL, 1L)
  BUNDLEFS_SET(CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL)
  BUNDLEFS_SET(CURLOPT_USERAGENT, request->user_agent)
  BUNDLEFS_SET(CURLOPT_HTTPHEADER, request->headers)
  BUNDLEFS_SET(CURLOPT_CONNECTTIMEOUT_MS, request->connect_timeout)
  BUNDLEFS_SET(CURLOPT_HTTP_CONTENT_DECODING, 0L)
  BUNDLEFS_SET(CURLOPT_HEADERFUNCTION, request->header)
  BUNDLEFS_SET(CURLOPT_HEADERDATA, request->context)
  BUNDLEFS_SET(CURLOPT_WRITEFUNCTION, request->body)
  BUNDLEFS_SET(CURLOPT_WRITEDATA, request->context)
  BUNDLEFS_SET(CURLOPT_NOPROGRESS, 0L)
  BUNDLEFS_SET(CURLOPT_XFERINFOFUNCTION, request->progress)
  BUNDLEFS_SET(CURLOPT_XFERINFODATA, request->context)
#undef BUNDLEFS_SET
  return result == CURLE_OK ? library->easy_perform(handle) : result;
}

// Returns the URL to which the last request was redirected; NULL if it was not. It is valid until the next request.
static inline const char *bundlefs_curl_redirect(const struct bundlefs_curl *library, CURL *handle) {
  __typeof__(&curl_easy_getinfo) get = (__typeof__(&curl_easy_getinfo))library->easy_getinfo;
  char *url = NULL;
  return get(handle, CURLINFO_REDIRECT_URL, &url) == CURLE_OK ? url : NULL;
}

#endif
