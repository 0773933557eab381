import Posix
import TestSupport

/// Makes a planned layer on disk.
struct LayerMaker {
  private let layer: PlannedLayer
  /// The path of each file's first name.
  private var firstPaths: [Int: ByteString] = [:]

  /// Fills an existing, empty directory.
  static func make(_ layer: PlannedLayer, at root: ByteString) throws {
    var maker = LayerMaker(layer: layer)
    try maker.fill(layer.root, at: root)
  }

  private init(layer: PlannedLayer) { self.layer = layer }

  /// Sets the directory's mtime last: every new entry changes it.
  private mutating func fill(_ directory: PlannedDirectory, at path: ByteString) throws {
    for (name, entry) in directory.entries.sorted(by: { $0.key < $1.key }) {
      switch entry {
      case .directory(let inner):
        try (path / name).makeDirectory()
        try fill(inner, at: path / name)
      case .file(let index):
        try makeFile(index, at: path / name)
      }
    }
    for name in directory.opaqueMarkers.attributes { try path.setAttribute(name, [UInt8(ascii: "y")]) }
    try applyMetadata(path, directory.metadata, isLink: false)
  }

  private mutating func makeFile(_ index: Int, at path: ByteString) throws {
    if let first = firstPaths[index] { return try path.makeHardLink(of: first) }
    firstPaths[index] = path
    let file = layer.files[index]
    try create(file.form, at: path)
    try applyMetadata(path, file.metadata, isLink: file.form.kind == .symbolicLink)
  }

  private func create(_ form: PlannedForm, at path: ByteString) throws {
    switch form {
    case .regular(let content): try path.write(content)
    case .link(let target): try path.makeLink(to: target)
    default: try path.makeNode(mode: form.kind.rawValue | 0o600, device: form.rdev)
    }
  }

  /// Sets the owner before the mode: chown(2) clears the set-ID bits.
  private func applyMetadata(_ path: ByteString, _ metadata: PlannedMetadata, isLink: Bool) throws {
    for (name, value) in metadata.attributes { try path.setAttribute(name, value) }
    try path.setOwner(metadata.owner, group: metadata.group)
    if !isLink { try path.setMode(metadata.permissions) }
    try path.setModified(metadata.modified)
  }
}
