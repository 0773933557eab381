import CMicroHTTPD

/// The functions of libmicrohttpd, which is loaded when it is first needed.
enum Microhttpd {
  /// Not to be used unless `isInstalled`.
  static let functions: bundlefs_microhttpd = {
    var functions = bundlefs_microhttpd()
    _ = bundlefs_microhttpd_load(&functions)
    return functions
  }()

  /// Whether the library is installed, with all functions.
  static let isInstalled: Bool = {
    var functions = bundlefs_microhttpd()
    return bundlefs_microhttpd_load(&functions) != 0
  }()
}
