import Posix
import TestSupport
import Testing

/// Reads an unchanging layer on disk as a plan, the input of the model.
struct DiskPlan {
  private var layer: PlannedLayer
  private var known: [UInt64: Int] = [:]

  static func read(_ root: ByteString) throws -> PlannedLayer {
    var plan = DiskPlan(
      layer: PlannedLayer(root: PlannedDirectory(metadata: try metadata(root.status(), at: root))))
    let directory = try plan.directory(root, root.status())
    plan.layer.root = directory
    return plan.layer
  }

  private mutating func directory(_ path: ByteString, _ status: StatResult) throws -> PlannedDirectory {
    var directory = PlannedDirectory(metadata: try Self.metadata(status, at: path))
    let attributes = try path.attributeNames()
    for marker in [OpaqueMarkers.trusted, .user] where !attributes.filter(marker.attributes.contains).isEmpty
    {
      directory.opaqueMarkers.formUnion(marker)
    }
    for name in try path.names() {
      let status = try (path / name).status()
      if status.kind == .directory {
        directory.entries[name] = .directory(try self.directory(path / name, status))
      } else {
        directory.entries[name] = .file(try file(path / name, status))
      }
    }
    return directory
  }

  private mutating func file(_ path: ByteString, _ status: StatResult) throws -> Int {
    if let index = known[status.inode] { return index }
    let form: PlannedForm =
      switch status.kind {
      case .regular: .regular(content: try path.read())
      case .symbolicLink: .link(target: try path.linkTarget())
      case .fifo: .fifo
      case .socket: .socket
      case .characterDevice: .character(major: major(status), minor: minor(status))
      case .blockDevice: .block(major: major(status), minor: minor(status))
      default: throw TestFailure("\(path): \(status) is not expected here")
      }
    layer.files.append(PlannedFile(form: form, metadata: try Self.metadata(status, at: path)))
    known[status.inode] = layer.files.count - 1
    return layer.files.count - 1
  }

  /// As gnu_dev_major(3).
  private func major(_ status: StatResult) -> UInt32 {
    UInt32((status.rdev >> 8 & 0xfff) | (status.rdev >> 32 & 0xffff_f000))
  }

  private func minor(_ status: StatResult) -> UInt32 {
    UInt32(truncatingIfNeeded: (status.rdev & 0xff) | (status.rdev >> 12 & 0xffff_ff00))
  }

  private static func metadata(_ status: StatResult, at path: ByteString) throws -> PlannedMetadata {
    var metadata = PlannedMetadata(status)
    for name in try path.attributeNames() where name.hasPrefix("user.") && !name.hasPrefix("user.overlay.") {
      metadata.attributes[name] = try path.attribute(name)
    }
    return metadata
  }
}

/// Expects a mount to match the model of these unchanging layers, topmost first.
func expectMerged(
  _ layers: [ByteString], at point: ByteString, _ stage: String = "at the end",
  scope: TreeComparison.Scope = .init(), location: SourceLocation = #_sourceLocation
) throws {
  let stack = try layers.map { try DiskPlan.read($0) }
  let differences = TreeComparison.differences(stack, at: point, implementation: .bundlefs, scope: scope)
  #expect(
    differences.isEmpty,
    "\(stage): \(differences.count) differences\n\(differences.prefix(12).joined(separator: "\n"))",
    sourceLocation: location)
}
