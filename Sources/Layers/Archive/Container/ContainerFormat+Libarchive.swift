#if Archives
import CArchive
import Posix

extension ContainerFormat {
  /// Lets libarchive read archives of this kind.
  /// - Throws: EOPNOTSUPP if it lacks the kind.
  func enable(in archive: OpaquePointer, _ library: bundlefs_libarchive) throws(Errno) {
    if compression != .none, kind == .tar {
      // Which of them it is, only the decompressed bytes show.
      _ = library.read_support_format_cpio?(archive)
    }
    let function: (@convention(c) (OpaquePointer?) -> CInt)? =
      switch kind {
      case .tar: library.read_support_format_tar
      case .sevenZip: library.read_support_format_7zip
      case .cpio: library.read_support_format_cpio
      case .ar: library.read_support_format_ar
      case .iso9660: library.read_support_format_iso9660
      case .cab: library.read_support_format_cab
      case .xar: library.read_support_format_xar
      case .rar: library.read_support_format_rar
      case .rar5: library.read_support_format_rar5
      case .lha: library.read_support_format_lha
      }
    guard let function, function(archive) == ARCHIVE_OK else { throw .notSupported }
  }

  /// The kind that libarchive found, once it has read a header.
  func found(by archive: OpaquePointer, _ library: bundlefs_libarchive) -> ContainerFormat {
    var found = self
    let format = library.format.unsafelyUnwrapped(archive)
    if kind == .tar, format & ARCHIVE_FORMAT_BASE_MASK == ARCHIVE_FORMAT_CPIO { found.kind = .cpio }
    return found
  }

  /// Whether names are converted to UTF-8. Those of the others are bytes.
  var hasUnicodeNames: Bool { ![.tar, .cpio, .ar].contains(kind) }
}

extension ContainerFormat.Compression {
  /// Lets libarchive decompress.
  /// - Throws: EOPNOTSUPP if it cannot, or would run a program.
  func enable(in archive: OpaquePointer, _ library: bundlefs_libarchive) throws(Errno) {
    let function: (@convention(c) (OpaquePointer?) -> CInt)? =
      switch self {
      case .none, .gzip: nil
      case .bzip2: library.read_support_filter_bzip2
      case .xz: library.read_support_filter_xz
      case .zstd: library.read_support_filter_zstd
      case .lz4: library.read_support_filter_lz4
      case .lzip: library.read_support_filter_lzip
      case .lzma: library.read_support_filter_lzma
      case .lzop: library.read_support_filter_lzop
      case .compress: library.read_support_filter_compress
      }
    guard let function, function(archive) == ARCHIVE_OK else { throw .notSupported }
  }
}
#endif
