import CLinux
import CLibrary

/// Memory that outlives the process that writes it: a memory file (memfd_create(2)), mapped by every process that shares
/// it. It is sparse, so that its parts can have fixed places and take only the pages that were written.
public final class SharedMemory: @unchecked Sendable {
  /// The first byte of the mapping.
  public let base: UnsafeMutableRawPointer
  /// Bytes.
  public let size: Int
  /// The memory file, which a successor maps after exec(3).
  public let file: Descriptor

  /// Makes and maps a memory file of zeros.
  /// - Parameter size: a multiple of the page size.
  /// - Throws: ENOMEM, EMFILE; EFBIG beyond RLIMIT_FSIZE.
  public convenience init(name: String, size: Int) throws(Errno) {
    let file = Descriptor(owning: try checked { linux_memory_file(name) })
    _ = try checked { ftruncate(file.rawValue, off_t(size)) }
    try self.init(mapping: file)
  }

  /// Maps a memory file that another process has made.
  /// - Throws: ENOMEM; EINVAL if it is empty.
  public init(mapping file: consuming Descriptor) throws(Errno) {
    size = Int(clamping: try file.attributes().size)
    let mapping = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.rawValue, 0)
    guard let mapping, mapping != MAP_FAILED else { throw .current }
    base = mapping
    self.file = file
  }

  deinit { munmap(base, size) }

  /// The bytes from an offset on, as values of a type whose alignment the offset has.
  public func values<Value: BitwiseCopyable>(of type: Value.Type, at offset: Int) -> UnsafeMutablePointer<
    Value
  > {
    (base + offset).assumingMemoryBound(to: type)
  }
}
