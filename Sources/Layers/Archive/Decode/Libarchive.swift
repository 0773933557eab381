#if Archives
import CArchive

/// The functions of libarchive, which is loaded when it is first needed.
enum Libarchive {
  /// nil if it is not installed.
  static let functions: bundlefs_libarchive? = {
    var functions = bundlefs_libarchive()
    return bundlefs_libarchive_load(&functions) != 0 ? functions : nil
  }()

  /// The methods of zip entries that it decodes beside those of linked decoders: LZMA, Zstandard, XZ and PPMd.
  private static let methods: Set<UInt16> = [14, formerZstandard, zstandard, 95, 98]
  private static let zstandard: UInt16 = 93
  /// The number of Zstandard in version 6.3.7 of zip's specification only.
  private static let formerZstandard: UInt16 = 20

  /// The number by which libarchive knows a method.
  static func number(of method: UInt16) -> UInt16 { method == formerZstandard ? zstandard : method }

  static func supports(_ method: UInt16) -> Bool { methods.contains(method) && functions != nil }
}
#endif
