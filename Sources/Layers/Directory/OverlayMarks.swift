import Posix
import Synchronization

/// What overlayfs has recorded at a directory of a layer that it wrote, beyond whether the directory is opaque.
struct OverlayMarks: OptionSet {
  let rawValue: UInt8

  /// `trusted.overlay.impure`: entries may have been copied up, perhaps without their content, or renamed.
  static let impure = OverlayMarks(rawValue: 1)
  /// `user.overlay.impure`, of an overlayfs mounted with `userxattr`.
  static let userImpure = OverlayMarks(rawValue: 2)
  /// `trusted.overlay.opaque` is `x`: empty files with `trusted.overlay.whiteout` are whiteouts.
  static let whiteouts = OverlayMarks(rawValue: 4)
  static let userWhiteouts = OverlayMarks(rawValue: 8)

  /// The attributes of the directory.
  /// - Throws: what reading them throws.
  init(of directory: borrowing Descriptor) throws(Errno) {
    self = []
    func holdsWhiteouts(_ attribute: StaticString) throws(Errno) -> Bool {
      try directory.directoryAttribute(attribute.cName, is: OpaqueAttribute.withWhiteouts)
    }
    let names: [UInt8]
    do throws(Errno) { names = try directory.extendedAttributeNames() } catch {
      if error == .notSupported || error == .noData || error == .notPermitted { return }
      throw error
    }
    for name in names.split(separator: 0) where ReservedAttribute.isMarker(name) {
      switch String(decoding: name, as: UTF8.self) {
      case "trusted.overlay.impure": insert(.impure)
      case "user.overlay.impure": insert(.userImpure)
      case OpaqueAttribute.trusted.description:
        if try holdsWhiteouts(OpaqueAttribute.trusted) { insert(.whiteouts) }
      case OpaqueAttribute.user.description:
        if try holdsWhiteouts(OpaqueAttribute.user) { insert(.userWhiteouts) }
      default: break
      }
    }
  }

  init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// Entries of a layer that overlayfs wrote with `metacopy` or `redirect_dir`.
///
/// A metacopy is a file without its content, which is that of a file in a layer below; a redirected directory is to be
/// merged with one of another name. The former would show NULs, and a write would make them last; the latter would lack
/// what lies below. Both are refused by EIO, and counted for `status`.
extension LayerDirectory {
  /// The marks of this directory, which are read once.
  func overlayMarks(_ handle: SharedDescriptor) throws(Errno) -> OverlayMarks {
    let known = marks.load(ordering: .relaxed)
    if known != Self.unreadMarks { return OverlayMarks(rawValue: known) }
    let read = try OverlayMarks(of: handle.descriptor)
    marks.store(read.rawValue, ordering: .relaxed)
    return read
  }

  static var unreadMarks: UInt8 { .max }

  /// - Throws: EIO for a file whose content is in a layer below.
  func refuseMetacopy(
    _ name: CName, _ attributes: FileStatus, in handle: SharedDescriptor
  ) throws(Errno) {
    guard attributes.isRegular else { return }
    let marks = try overlayMarks(handle)
    if marks.isDisjoint(with: [.impure, .userImpure]) { return }
    var isMetacopy = false
    if marks.contains(.impure) {
      isMetacopy = try has("trusted.overlay.metacopy", name, attributes, in: handle)
    }
    if !isMetacopy, marks.contains(.userImpure) {
      isMetacopy = try has("user.overlay.metacopy", name, attributes, in: handle)
    }
    try refuse(name, if: isMetacopy)
  }

  /// - Throws: EIO for a directory that is to be merged with others of another name.
  func refuseRedirect(_ name: CName, _ directory: SharedDescriptor, in handle: SharedDescriptor) throws(Errno)
  {
    let marks = try overlayMarks(handle)
    if marks.isDisjoint(with: [.impure, .userImpure]) { return }
    var isRedirected = false
    if marks.contains(.impure) {
      isRedirected = try directory.descriptor.hasDirectoryAttribute("trusted.overlay.redirect")
    }
    if !isRedirected, marks.contains(.userImpure) {
      isRedirected = try directory.descriptor.hasDirectoryAttribute("user.overlay.redirect")
    }
    try refuse(name, if: isRedirected)
  }

  /// Whether an entry was refused.
  func isOverlayReference(_ name: CName) -> Bool {
    gate.overlayReferences.contains([UInt8](bytesOf: name), in: identity)
  }

  private func refuse(_ name: CName, if isReference: Bool) throws(Errno) {
    gate.overlayReferences.record(isReference, [UInt8](bytesOf: name), in: identity)
    if isReference { throw .ioError }
  }

  /// Whether an entry that is not a directory has an attribute.
  func has(
    _ attribute: CName, _ name: CName, _ attributes: FileStatus, in handle: SharedDescriptor
  ) throws(Errno) -> Bool {
    let nothing = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    do throws(Errno) {
      // An own mount at the name would send the request to this process.
      if covered == nil {
        do throws(Errno) {
          _ = try handle.descriptor.extendedAttribute(attribute, ofEntry: name, into: nothing)
          return true
        } catch {
          if error != .noFunction && error != .notPermitted { throw error }
        }
      }
      let path = try handle.descriptor.open(name, [.pathOnly, .noFollow])
      // It was replaced meanwhile: what it is now is found at the next lookup.
      if try outerAttributes(of: path).identity != attributes.identity { return false }
      _ = try path.extendedAttribute(attribute, into: nothing)
      return true
    } catch {
      if error == .noData || error == .notSupported || error == .noSuchFileOrDirectory { return false }
      throw error
    }
  }
}

/// The entries of a layer that were refused, since their content or their lower directories have another name.
public final class OverlayReferences: Sendable {
  private struct Entry: Hashable {
    let directory: FileIdentity
    let name: [UInt8]
  }
  private static let capacity = 4096
  private let entries = Locked<Set<Entry>>([])

  /// How many there are, at most 4,096, and the name of one of them.
  public var summary: (count: Int, example: [UInt8])? {
    entries.withLock { entries in
      entries.min { $0.name.lexicographicallyPrecedes($1.name) }.map { (entries.count, $0.name) }
    }
  }

  func contains(_ name: [UInt8], in directory: FileIdentity) -> Bool {
    entries.withLock { $0.contains(Entry(directory: directory, name: name)) }
  }

  func record(_ isReference: Bool, _ name: [UInt8], in directory: FileIdentity) {
    entries.withLock { entries in
      let entry = Entry(directory: directory, name: name)
      if !isReference {
        if !entries.isEmpty { entries.remove(entry) }
      } else if entries.count < Self.capacity {
        entries.insert(entry)
      }
    }
  }
}
