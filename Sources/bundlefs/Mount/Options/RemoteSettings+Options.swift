import Glibc
import Layers
import Posix
import RemoteFiles

extension RemoteSettings {
  /// As the options of a mount say. The cache folder is opened when it is needed.
  init(_ options: MountOptions) {
    self.init()
    refresh = options.httpRefresh
    timeout = options.layerTimeout ?? timeout
    headers = options.absoluteHeadersFile.map { HeadersFile($0) }
    let (given, limit) = (options.httpCache.map(options.real), options.httpCacheSize)
    openFolder = { Self.openFolder(given, UInt64(limit)) }
  }

  /// Where the folder cannot be used, a message says so, and blocks are kept in memory.
  private static func openFolder(_ given: [UInt8]?, _ limit: UInt64) -> CacheFolder? {
    guard let path = given ?? defaultFolder else {
      Terminal.printError(
        "http_cache: neither XDG_CACHE_HOME nor HOME is set; what is read is kept in memory")
      return nil
    }
    do throws(Failure) {
      try UserFolder.make(given == nil ? path : path.folderAndName.folder)
      return try Failure.naming(path.shown) { () throws(Errno) in try CacheFolder(path, limit: limit) }
    } catch {
      Terminal.printError(
        "http_cache: \(error.message); it must be a folder of yours that no other user may enter; "
          + "what is read is kept in memory")
      return nil
    }
  }

  /// `$XDG_CACHE_HOME/bundlefs` or `~/.cache/bundlefs`; for root without a home of its own `/var/cache/bundlefs`.
  private static var defaultFolder: [UInt8]? {
    // With sudo(8) HOME can be another user's.
    let own = UserFolder.base("XDG_CACHE_HOME", orInHome: ".cache", UserFolder.environment) { path in
      (try? Descriptor.open(path, [.pathOnly, .directory]).attributes().owner) == geteuid()
    }
    let system = geteuid() == 0 ? Array("/var/cache".utf8) : nil
    return (own ?? system).map { $0 + Array("/bundlefs".utf8) }
  }
}
