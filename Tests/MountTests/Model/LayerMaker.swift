import Posix
import TestSupport

/// Makes a planned layer real.
struct LayerMaker {
  private let layer: PlannedLayer
  /// Where each file has got its first name.
  private var made: [Int: ByteString] = [:]

  /// Fills the directory, which exists and is empty.
  static func make(_ layer: PlannedLayer, at root: ByteString) throws {
    var maker = LayerMaker(layer: layer)
    try maker.fill(layer.root, at: root)
  }

  private init(layer: PlannedLayer) { self.layer = layer }

  /// The directory's own time comes last: every name made in it moves the time.
  private mutating func fill(_ directory: PlannedDirectory, at path: ByteString) throws {
    for (name, entry) in directory.entries.sorted(by: { $0.key < $1.key }) {
      switch entry {
      case .directory(let inner):
        try (path / name).makeDirectory()
        try fill(inner, at: path / name)
      case .file(let index):
        try place(index, at: path / name)
      }
    }
    for name in directory.marks.attributes { try path.setAttribute(name, [UInt8(ascii: "y")]) }
    try dress(path, directory.metadata, isLink: false)
  }

  private mutating func place(_ index: Int, at path: ByteString) throws {
    if let first = made[index] { return try path.makeHardLink(of: first) }
    made[index] = path
    let file = layer.files[index]
    try create(file.form, at: path)
    try dress(path, file.metadata, isLink: file.form.kind == .symbolicLink)
  }

  private func create(_ form: PlannedForm, at path: ByteString) throws {
    switch form {
    case .regular(let content): try path.write(content)
    case .link(let target): try path.makeLink(to: target)
    default: try path.makeNode(mode: form.kind.rawValue | 0o600, device: form.rdev)
    }
  }

  /// Owner before mode: a change of owner clears the set-id bits.
  private func dress(_ path: ByteString, _ metadata: PlannedMetadata, isLink: Bool) throws {
    for (name, value) in metadata.attributes { try path.setAttribute(name, value) }
    try path.setOwner(metadata.owner, group: metadata.group)
    if !isLink { try path.setMode(metadata.permissions) }
    try path.setModified(metadata.modified)
  }
}
