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

  /// - Parameter name: by which the MIME type goes, unless the file tells it itself.
  /// - Throws: EISDIR, or EOPNOTSUPP, for another kind of file.
  init(_ file: LayerFile, name: [UInt8], types: MIMETypes) throws(Errno) {
    let attributes = try file.attributes()
    guard attributes.isRegular else { throw attributes.isDirectory ? .isDirectory : .notSupported }
    let type = try file.mimeType(as: name, by: types)
    self.file = file
    size = attributes.size
    mimeType = type
  }

  /// The resource without its content.
  func described(as url: URL) throws(Errno) -> LoadedResource {
    let leading = try file.leadingBytes(TextEncoding.leadingCount)
    guard let length = Int(exactly: size) else { throw Errno(rawValue: EFBIG) }
    return LoadedResource(
      url: url, mimeType: mimeType,
      textEncodingName: encoding(leading, isWhole: leading.count >= length), length: length, data: Data())
  }

  /// The resource with its content; nil if it is not wanted any more.
  func loaded(as url: URL, keepsOn: () -> Bool) throws(Errno) -> LoadedResource? {
    guard var content = try ContentBuffer(for: size) else { throw Errno(rawValue: ENOMEM) }
    while true {
      guard keepsOn() else { return nil }
      if try !content.readOn(from: file) { break }
    }
    let data = content.data()
    let leading = Array(data.prefix(TextEncoding.leadingCount))
    return LoadedResource(
      url: url, mimeType: mimeType,
      textEncodingName: encoding(leading, isWhole: leading.count == data.count), length: data.count,
      data: data)
  }

  private func encoding(_ leading: [UInt8], isWhole: Bool) -> String? {
    TextEncoding.name(ofContent: leading, isWhole: isWhole, type: mimeType)
  }
}

/// Memory that a file is read into, and that becomes Data without being copied.
private struct ContentBuffer: ~Copyable {
  private var start: UnsafeMutableRawPointer
  private var capacity: Int
  private var count = 0

  /// As much as is read at once, so that a load can be given up in between.
  private static let step = 1 << 20

  /// Room for a file.
  /// - Returns: nil without so much memory.
  init?(for size: UInt64) throws(Errno) {
    // One more, so that a file of that size is known to be at its end by one read.
    guard size < UInt64(Int.max / 2) else { throw Errno(rawValue: EFBIG) }
    capacity = Int(size) + 1
    guard let start = malloc(capacity) else { return nil }
    self.start = start
  }

  deinit { free(start) }

  /// Reads a step further.
  /// - Returns: false at the end of the file.
  mutating func readOn(from file: LayerFile) throws(Errno) -> Bool {
    // It has grown since its size was told.
    if count == capacity { try resize(to: capacity + max(capacity / 2, 1 << 16)) }
    let wanted = min(Self.step, capacity - count)
    let room = UnsafeMutableRawBufferPointer(start: start + count, count: wanted)
    let read = try file.read(into: room, at: Int64(count))
    count += read
    return read == wanted
  }

  /// What was read.
  consuming func data() -> Data {
    // It has shrunk.
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
