import CLibrary
import Posix

/// Extended attributes.
extension LayerDirectory {
  /// Calls `getxattr(2)` on the directory.
  public func extendedAttribute(
    _ name: CName, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    if case .archive(let archive) = backing {
      let all = archive.extendedAttributes(ofFolder: identity.inode)
      return try ArchivedAttributes.value(of: name, in: all, into: buffer)
    }
    guard case .descriptor(let handle) = backing else { throw .noData }
    return try gate.call { () throws(Errno) in try handle.descriptor.extendedAttribute(name, into: buffer) }
  }

  /// Calls getxattrat(2) on an entry that is not a directory, if the name still has the given identity.
  /// - Throws: as `openFile`.
  public func extendedAttribute(
    _ attribute: CName, of name: CName, identity: FileIdentity, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    if identity.isMergedTable { throw .noData }
    return try withSpelling(of: name) { name throws(Errno) in
      try extendedAttributeExact(attribute, of: name, identity: identity, into: buffer)
    }
  }

  private func extendedAttributeExact(
    _ attribute: CName, of name: CName, identity: FileIdentity, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    // An own mount at the name would send the request to this process.
    if covered == nil, case .descriptor(let handle) = backing {
      do throws(Errno) {
        return try gate.call { () throws(Errno) in
          let value: Result<Int, Errno>
          do throws(Errno) {
            value = .success(
              try handle.descriptor.extendedAttribute(attribute, ofEntry: name, into: buffer))
          } catch {
            value = .failure(error)
          }
          if try outerAttributes(of: name, in: handle).identity != identity { throw .staleFileHandle }
          return try value.get()
        }
      } catch {
        if error != .noFunction && error != .notPermitted { throw error }
      }
    }
    return try openPath(name, identity: identity).extendedAttribute(attribute, into: buffer)
  }

  /// The names of the directory's extended attributes, each followed by NUL.
  public func extendedAttributeNames() throws(Errno) -> [UInt8] {
    if case .archive(let archive) = backing {
      return ArchivedAttributes.names(of: archive.extendedAttributes(ofFolder: identity.inode))
    }
    guard case .descriptor(let handle) = backing else { return [] }
    return try gate.call { () throws(Errno) in try handle.descriptor.extendedAttributeNames() }
  }
}
