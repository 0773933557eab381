import Glibc
import Layers
import Posix

/// The names in the mount's root that are bundlefs's own. What the layers have under them is hidden.
struct ReservedNames: Sendable {
  /// The control file, `.routes` unless `control=` says otherwise; empty, as no name is, if there is none.
  let control: [UInt8]
  /// Whether listings show the control file.
  var listsControl = false
  /// The resource directory: the resource scheme and a colon, `rsrc:` by default.
  let resources: [UInt8]
  /// Whether case does not count.
  var foldsNames = false

  func isControl(_ name: CName) -> Bool { equal(control, name) }

  /// Whether it is the control file's name in the spelling that listings show.
  func isControlSpelling(_ name: CName) -> Bool { Self.equal(control, name) }

  func isResources(_ name: CName) -> Bool { equal(resources, name) }

  /// Whether it is the name that every directory has where case does not count.
  func isFoldingMarker(_ name: CName) -> Bool { foldsNames && FoldingMarker.isName(name) }

  func contains(_ name: CName) -> Bool { isControl(name) || isResources(name) }

  func contains(_ name: [UInt8]) -> Bool {
    if foldsNames { return NameFolding.areEqual(name, control) || NameFolding.areEqual(name, resources) }
    return name == control || name == resources
  }

  private func equal(_ bytes: [UInt8], _ name: CName) -> Bool {
    foldsNames ? NameFolding.areEqual(bytes, [UInt8](bytesOf: name)) : Self.equal(bytes, name)
  }

  private static func equal(_ bytes: [UInt8], _ name: CName) -> Bool {
    bytes.withUnsafeBytes {
      strlen(name) == $0.count && memcmp(name, $0.baseAddress.unsafelyUnwrapped, $0.count) == 0
    }
  }
}
