import Layers
import Posix

/// What a program that loads a resource is told of it.
public struct ResourceDescription: Sendable, Hashable {
  /// The MIME type; of a directory `inode/directory`.
  public let mimeType: String
  /// The size in bytes; nil for what is not a regular file.
  public let length: UInt64?
  /// How its text is encoded, by IANA's name; nil for what is no text.
  public let textEncodingName: String?
}

extension FoundResource {
  /// Describes the resource, by its name and its first bytes.
  /// - Throws: ENOENT or ESTALE when it was removed or replaced since it was found; EACCES and EIO as its
  ///   layer answers.
  public func description(by types: MIMETypes) throws(Errno) -> ResourceDescription {
    guard attributes.isRegular else {
      return ResourceDescription(mimeType: try mimeType(by: types), length: nil, textEncodingName: nil)
    }
    let file = try open()
    // The file may have grown or shrunk since it was found.
    let size = try file.attributes().size
    let leading = try file.leadingBytes(TextEncoding.leadingCount)
    let type = types.type(for: name, attribute: try file.ownMIMEType()) { leading }
    return ResourceDescription(
      mimeType: type, length: size,
      textEncodingName: TextEncoding.name(
        ofContent: leading, isWhole: UInt64(leading.count) >= size, type: type))
  }

  /// The MIME type alone.
  /// - Throws: as ``description(by:)``.
  public func mimeType(by types: MIMETypes) throws(Errno) -> String {
    if let kind = attributes.kind, let type = MIMETypes.type(ofKind: kind) { return type }
    return try open().mimeType(as: name, by: types)
  }

  /// Opens the content of a regular file.
  /// - Throws: as ``description(by:)``; EISDIR for a directory.
  public func open() throws(Errno) -> LayerFile {
    guard attributes.isRegular, let part = container?.part(of: layer), let name = path.last else {
      throw .isDirectory
    }
    let identity = attributes.identity
    return try withCName(name) { name throws(Errno) in try part.openFile(name, identity: identity) }
  }
}

extension FoundResource {
  /// The value of an xattr of a file or directory; nil without it.
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
  /// The MIME type of a regular file: its own, or by its name, or by its first bytes.
  public func mimeType(as name: [UInt8], by types: MIMETypes) throws(Errno) -> String {
    let attribute = try ownMIMEType()
    return try types.type(for: name, attribute: attribute) { () throws(Errno) in
      try leadingBytes(MIMETypes.leadingCount)
    }
  }

  /// The value of the xattr `user.mime_type`, by which a file tells its type itself; nil without it.
  public func ownMIMEType() throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(1024) { buffer throws(Errno) in
        Array(buffer.prefix(try extendedAttribute("user.mime_type", into: buffer)))
      }
    } catch {
      // A value that is longer is no type.
      if error == .noData || error == .notSupported || error == .outOfRange { return nil }
      throw error
    }
  }

  /// The file's first bytes: so many, or all.
  public func leadingBytes(_ count: Int) throws(Errno) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { buffer.deallocate() }
    return Array(buffer[..<(try read(into: buffer, at: 0))])
  }
}
