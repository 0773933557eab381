import Layers
import Posix

/// The metadata of a resource that clients receive with its content.
public struct ResourceDescription: Sendable, Hashable {
  /// The MIME type, `inode/directory` for directories.
  public let mimeType: String
  /// The size in bytes; nil for other kinds than regular files.
  public let length: UInt64?
  /// The IANA name of the text encoding; nil if the file is not text.
  public let textEncodingName: String?
}

extension FoundResource {
  /// Determines the metadata from the name and the first bytes.
  /// - Throws: ENOENT or ESTALE if the file was removed or replaced after the lookup; EACCES or EIO.
  public func description(by types: MIMETypes) throws(Errno) -> ResourceDescription {
    guard attributes.isRegular else {
      return ResourceDescription(mimeType: try mimeType(by: types), length: nil, textEncodingName: nil)
    }
    let file = try open()
    // The size may have changed since the lookup.
    let size = try file.attributes().size
    let leading = try file.leadingBytes(TextEncoding.leadingCount)
    let type = types.type(for: name, attribute: try file.mimeTypeAttribute()) { leading }
    return ResourceDescription(
      mimeType: type, length: size,
      textEncodingName: TextEncoding.name(
        ofContent: leading, isWhole: UInt64(leading.count) >= size, type: type))
  }

  /// The MIME type alone.
  /// - Throws: See ``description(by:)``.
  public func mimeType(by types: MIMETypes) throws(Errno) -> String {
    if let kind = attributes.kind, let type = MIMETypes.type(ofKind: kind) { return type }
    return try open().mimeType(as: name, by: types)
  }

  /// Opens a regular file.
  /// - Throws: See ``description(by:)``; EISDIR for other kinds.
  public func open() throws(Errno) -> LayerFile {
    guard attributes.isRegular, let name = path.last else { throw .isDirectory }
    let identity = attributes.identity
    return try withCName(name) { name throws(Errno) in
      guard let part = container?.part(of: layer, with: name, identity) else { throw .isDirectory }
      return try part.openFile(name, identity: identity)
    }
  }
  /// The value of an extended attribute; nil if it is absent.
  public func extendedAttribute(_ name: CName) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(65536) { buffer throws(Errno) in
        if case .directory(let directory, _) = entry {
          return Array(buffer.prefix(try directory.top.extendedAttribute(name, into: buffer)))
        }
        return Array(buffer.prefix(try open().extendedAttribute(name, into: buffer)))
      }
    } catch {
      if error == .noData || error == .notSupported { return nil }
      throw error
    }
  }
}

extension LayerFile {
  /// The MIME type by extended attribute, name or first bytes.
  public func mimeType(as name: [UInt8], by types: MIMETypes) throws(Errno) -> String {
    let attribute = try mimeTypeAttribute()
    return try types.type(for: name, attribute: attribute) { () throws(Errno) in
      try leadingBytes(MIMETypes.leadingCount)
    }
  }

  /// The value of the extended attribute `user.mime_type`; nil if it is absent or longer than 1,024 bytes.
  public func mimeTypeAttribute() throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(1024) { buffer throws(Errno) in
        Array(buffer.prefix(try extendedAttribute("user.mime_type", into: buffer)))
      }
    } catch {
      if error == .noData || error == .notSupported || error == .outOfRange { return nil }
      throw error
    }
  }

  /// Reads at most the first `count` bytes.
  public func leadingBytes(_ count: Int) throws(Errno) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { buffer.deallocate() }
    return Array(buffer[..<(try read(into: buffer, at: 0))])
  }
}
