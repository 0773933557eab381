import CZip
import Posix

/// Decodes by libzip, which is linked and starts fast.
///
/// libzip reads a synthetic archive with this entry only: a central directory and a local header, then the
/// bytes of the real file. So it never parses the real central directory again, and decoders share nothing
/// but the file.
final class LibzipDecoder: EntryDecoder, @unchecked Sendable {
  private let input: SingleEntryArchive
  private let archive: OpaquePointer
  private let file: OpaquePointer

  static func supports(_ method: UInt16) -> Bool {
    zip_compression_method_supported(Int32(method), 0) != 0
  }

  /// - Throws: EOPNOTSUPP for a method that libzip lacks; ENOMEM; EIO.
  override init(_ entry: CompressedEntry) throws(Errno) {
    input = SingleEntryArchive(entry)
    var error = zip_error_t()
    zip_error_init(&error)
    defer { zip_error_fini(&error) }
    let context = Unmanaged.passUnretained(input).toOpaque()
    guard let source = zip_source_function_create(SingleEntryArchive.callback, context, &error) else {
      throw .noMemory
    }
    guard let archive = zip_open_from_source(source, ZIP_RDONLY, &error) else {
      zip_source_free(source)
      throw input.failure ?? .ioError
    }
    guard let file = zip_fopen_index(archive, 0, 0) else {
      let code = zip_error_code_zip(zip_get_error(archive))
      zip_discard(archive)
      throw input.failure ?? Self.error(code)
    }
    self.archive = archive
    self.file = file
    try super.init(entry)
  }

  deinit {
    zip_fclose(file)
    zip_discard(archive)
  }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let count = zip_fread(file, buffer.baseAddress, zip_uint64_t(buffer.count))
    if count < 0 { throw input.failure ?? Self.error(zip_error_code_zip(zip_file_get_error(file))) }
    return Int(count)
  }

  private static func error(_ code: CInt) -> Errno {
    switch code {
    case ZIP_ER_COMPNOTSUPP, ZIP_ER_ENCRNOTSUPP: .notSupported
    case ZIP_ER_MEMORY: .noMemory
    default: .ioError
    }
  }
}
