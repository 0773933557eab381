import Bundles
import Foundation
import CLibrary
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

  func description(as url: URL, range: RequestedRange? = nil) throws(Errno) -> LoadedResource {
    let leading = try file.leadingBytes(TextEncoding.leadingCount)
    guard let length = Int(exactly: size) else { throw Errno(rawValue: EFBIG) }
    return resource(url, leading, length: length, data: Data(), range: range?.part(of: length))
  }

  /// The content, to be read piece by piece.
  func bytes(as url: URL, range: RequestedRange?, _ loaders: LoaderPool) throws(Errno) -> ResourceBytes {
    ResourceBytes(try description(as: url, range: range), file, loaders)
  }

  /// - Parameter shouldContinue: called between reads; false cancels.
  /// - Returns: nil if cancelled.
  func load(
    as url: URL, range: RequestedRange, shouldContinue: () -> Bool
  ) throws(Errno) -> LoadedResource? {
    let whole = try description(as: url, range: range)
    guard let range = whole.range else { return whole }
    guard var content = try ContentBuffer(for: UInt64(range.count), from: range.lowerBound) else {
      throw Errno(rawValue: ENOMEM)
    }
    repeat {
      if !shouldContinue() { return nil }
    } while try content.readNext(from: file, atMost: range.count)
    let data = content.data()
    return LoadedResource(
      url: url, mimeType: whole.mimeType, textEncodingName: whole.textEncodingName, length: whole.length,
      data: data, range: range.lowerBound..<range.lowerBound + data.count)
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

  private func resource(
    _ url: URL, _ leading: [UInt8], length: Int, data: Data, range: Range<Int>? = nil
  ) -> LoadedResource {
    let encoding = TextEncoding.name(ofContent: leading, isWhole: leading.count >= length, type: mimeType)
    return LoadedResource(
      url: url, mimeType: mimeType, textEncodingName: encoding, length: length, data: data,
      range: range)
  }
}

/// A growing buffer for a file's content, which becomes Data without a copy.
private struct ContentBuffer: ~Copyable {
  private var start: UnsafeMutableRawPointer
  private var capacity: Int
  private var count = 0
  /// Of its first byte in the file.
  private let offset: Int

  /// The size of one read: loads can be cancelled between reads.
  private static let chunkSize = 1 << 20

  /// - Returns: nil if there is not enough memory.
  init?(for size: UInt64, from offset: Int = 0) throws(Errno) {
    // One more byte, so that a short read shows the end of the file.
    guard size < UInt64(Int.max / 2) else { throw Errno(rawValue: EFBIG) }
    capacity = Int(size) + 1
    guard let start = malloc(capacity) else { return nil }
    self.start = start
    self.offset = offset
  }

  deinit { free(start) }

  /// - Parameter limit: of all that is read.
  /// - Returns: false at the limit, and at the end of the file.
  mutating func readNext(from file: LayerFile, atMost limit: Int = .max) throws(Errno) -> Bool {
    // The file has grown.
    if count == capacity { try resize(to: capacity + max(capacity / 2, 1 << 16)) }
    let size = min(Self.chunkSize, capacity - count, limit - count)
    let chunk = UnsafeMutableRawBufferPointer(start: start + count, count: size)
    let read = try file.read(into: chunk, at: Int64(offset + count))
    count += read
    return read == size && count < limit
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
