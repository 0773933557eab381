#if Archives
import CIsal
import Posix

/// ISA-L, which decodes Deflate and computes checksums faster than zlib. It is loaded once there is enough to do.
enum Isal {
  /// nil if it is not installed.
  private static let library: bundlefs_isal? = {
    var library = bundlefs_isal()
    return bundlefs_isal_load(&library) != 0 ? library : nil
  }()
  /// The bytes left to zlib instead. Those of an entry are counted twice: when decoded, and for the checksum.
  private static let deferred = Counter()
  /// To load the library takes 0.1 ms, in which zlib decodes about 40 KB.
  private static let worthwhile = 64 << 10

  /// - Returns: nil if the library is not installed, or if it is not worth loading yet.
  static func library(for bytes: Int) -> bundlefs_isal? {
    if bytes < worthwhile, deferred.count < worthwhile {
      deferred.add(UInt64(bytes))
      return nil
    }
    return library
  }
}
#endif
