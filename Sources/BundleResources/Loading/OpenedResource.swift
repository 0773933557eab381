import Bundles
import Foundation
import Glibc
import Layers
import Posix

/// A regular file that is a resource, open for reading.
struct OpenedResource: ~Copyable {
  private let file: LayerFile
  private let size: UInt64
  private let mimeType: String

  /// - Parameter name: determines the MIME type, unless an extended attribute of the file does.
  /// - Throws: EISDIR for a directory, EOPNOTSUPP for any other kind of file.
  init(_ file: LayerFile, name: [UInt8], types: MIMETypes) throws(Errno) {
    let attributes = try file.attributes()
    guard attributes.isRegular else { throw attributes.isDirectory ? .isDirectory : .notSupported }
    let type = try file.mimeType(as: name, by: types)
    self.file = file
    size = attributes.size
    mimeType = type
  }

  func description(as url: URL) throws(Errno) -> LoadedResource {
    let leading = try file.leadingBytes(TextEncoding.leadingCount)
    guard let length = Int(exactly: size) else { throw Errno(rawValue: EFBIG) }
    return resource(url, leading, length: length, data: Data())
  }

  /// - Parameter shouldContinue: called between reads; false cancels.
  /// - Returns: nil if cancelled.
  func load(as url: URL, shouldContinue: () -> Bool) throws(Errno) -> LoadedResource? {
    guard var content = try ContentBuffer(for: size) else { throw Errno(rawValue: ENOMEM) }
    repeat {
      if !shouldContinue() { return nil }
    } while try content.readNext(from: file)
    let data = content.data()
    return resource(url, Array(data.prefix(TextEncoding.leadingCount)), length: data.count, data: data)
  }

  private func resource(_ url: URL, _ leading: [UInt8], length: Int, data: Data) -> LoadedResource {
    let encoding = TextEncoding.name(ofContent: leading, isWhole: leading.count >= length, type: mimeType)
    return LoadedResource(
      url: url, mimeType: mimeType, textEncodingName: encoding, length: length, data: data)
  }
}

/// A growing buffer for a file's content, which becomes Data without a copy.
private struct ContentBuffer: ~Copyable {
  private var start: UnsafeMutableRawPointer
  private var capacity: Int
  private var count = 0

  /// The size of one read: loads can be cancelled between reads.
  private static let chunkSize = 1 << 20

  /// - Returns: nil if there is not enough memory.
  init?(for size: UInt64) throws(Errno) {
    // One more byte, so that a short read shows the end of the file.
    guard size < UInt64(Int.max / 2) else { throw Errno(rawValue: EFBIG) }
    capacity = Int(size) + 1
    guard let start = malloc(capacity) else { return nil }
    self.start = start
  }

  deinit { free(start) }

  /// - Returns: false at the end of the file.
  mutating func readNext(from file: LayerFile) throws(Errno) -> Bool {
    // The file has grown.
    if count == capacity { try resize(to: capacity + max(capacity / 2, 1 << 16)) }
    let size = min(Self.chunkSize, capacity - count)
    let chunk = UnsafeMutableRawBufferPointer(start: start + count, count: size)
    let read = try file.read(into: chunk, at: Int64(count))
    count += read
    return read == size
  }

  consuming func data() -> Data {
    // The file has shrunk.
    if capacity - count > 1 << 16 { try? resize(to: count + 1) }
    let (start, count) = (start, count)
    discard self
    if count == 0 {
      free(start)
      return Data()
    }
    return Data(bytesNoCopy: start, count: count, deallocator: .free)
  }

  private mutating func resize(to size: Int) throws(Errno) {
    guard let moved = realloc(start, size) else { throw Errno(rawValue: ENOMEM) }
    start = moved
    capacity = size
  }
}
