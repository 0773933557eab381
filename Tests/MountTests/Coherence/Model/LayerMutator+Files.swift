import Glibc
import Posix
import TestSupport

/// Changes to files.
extension LayerMutator {
  /// Overwrites, appends, truncates or rewrites, sometimes restoring mtime.
  mutating func changeInPlace(_ layer: Int) throws -> String? {
    let isRegular: (PlannedForm) -> Bool = { if case .regular = $0 { true } else { false } }
    guard let path = file(layer, where: isRegular), let (index, file) = layers[layer].file(path),
      case .regular(var content) = file.form, hardLinks.isChangeNoticed(path, of: index, layer, layers)
    else { return nil }
    let disk = layers[layer].disk(path)
    let before = try disk.status().modified
    var description: String
    switch random.number(0...3) {
    case 0 where !content.isEmpty:
      let offset = random.number(0...content.count - 1)
      let count = min(content.count - offset, random.pick([1, 10, 5000]))
      let patch = (0..<count).map { ~content[offset + $0] }
      content.replaceSubrange(offset..<offset + count, with: patch)
      try disk.overwrite(patch, at: offset)
      description = "write \(count) bytes at \(offset)"
    case 0, 1:
      let more = self.content()
      try disk.overwrite(more, at: content.count)
      content += more
      description = "append \(more.count) bytes"
    case 2:
      let size = random.number(0...content.count + 5000)
      try disk.setSize(size)
      content = Array(content.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - content.count))
      description = "truncate to \(size)"
    default:
      content = self.content()
      // Without O_CREAT, which protected_regular forbids in a sticky folder that others may write to.
      try disk.setSize(0)
      try disk.overwrite(content, at: 0)
      description = "rewrite with \(content.count) bytes"
    }
    // Without a watcher, a change that keeps both size and mtime cannot be noticed.
    if random.percent(25) && Mount.hasControl {
      try disk.setModified(before)
      description += ", keeping mtime"
    }
    layers[layer].edit(file: index) { $0.form = .regular(content: content) }
    try layers[layer].refresh(path)
    return "\(description): \(words(path))"
  }

  /// Renames a new file over an existing one.
  mutating func replace(_ layer: Int) throws -> String? {
    guard let path = file(layer, where: { _ in true }), let (_, old) = layers[layer].file(path) else {
      return nil
    }
    let disk = layers[layer].disk(path)
    var content = self.content()
    let isSimilar = random.percent(30)
    if isSimilar, case .regular(let before) = old.form { content = before.map { ~$0 } }
    let isInSameFolder = random.percent(50)
    let temporary = isInSameFolder ? disk.parent / ".being-written" : temporaryPath(layer)
    try temporary.write(content)
    if isSimilar { try temporary.setModified(old.metadata.modified) }
    willRemove(path, layer)
    try temporary.rename(to: disk)
    try added(path, .regular(content: content), layer)
    let kind = isSimilar ? "similar" : "other"
    return
      "replace by \(content.count) \(kind) bytes from \(isInSameFolder ? "the same folder" : "outside"): \(words(path))"
  }

  /// Creates a file, link, FIFO, socket or device.
  mutating func create(_ layer: Int) throws -> String? {
    guard let path = unusedPath(layer) else { return nil }
    let disk = layers[layer].disk(path)
    let before = try disk.parent.status().modified
    let form: PlannedForm
    switch random.number(0...9) {
    case 0..<6:
      form = .regular(content: content())
    case 6..<8:
      form = .link(target: random.pick(["nowhere", "..", "/", "a", "b/c"]))
    case 8: form = .fifo
    default: form = random.percent(50) ? .socket : .character(major: 1, minor: UInt32(random.number(3...9)))
    }
    try make(form, at: disk)
    // Archivers restore the folder's mtime after adding an entry.
    let keepsTime = random.percent(30)
    if keepsTime { try disk.parent.setModified(before) }
    try added(path, form, layer)
    return "make a \(form.kind)\(keepsTime ? ", keeping the folder's mtime" : ""): \(words(path))"
  }

  private func make(_ form: PlannedForm, at disk: ByteString) throws {
    switch form {
    case .regular(let content): try disk.write(content)
    case .link(let target): try disk.makeLink(to: target)
    default: try disk.makeNode(mode: form.kind.rawValue | 0o640, device: form.rdev)
    }
  }

  mutating func unlink(_ layer: Int) throws -> String? {
    guard let path = file(layer, where: { _ in true }) else { return nil }
    willRemove(path, layer)
    try layers[layer].disk(path).remove()
    try removed(path, layer)
    return "unlink \(words(path))"
  }

  mutating func makeHardLink(_ layer: Int) throws -> String? {
    guard limits.hasHardLinks, let old = file(layer, where: { _ in true }),
      let (index, _) = layers[layer].file(old),
      let path = unusedPath(layer)
    else { return nil }
    hardLinks.willChangeLinks(of: index, in: path.dropLast(), layer, layers)
    try layers[layer].disk(path).makeHardLink(of: layers[layer].disk(old))
    hardLinks.forget(below: path)
    layers[layer].set(.file(index), at: path)
    try layers[layer].refresh(path.dropLast())
    return "link \(words(path)) to \(words(old))"
  }

  /// Changes the mode, owner, times or extended attributes of a file or directory.
  mutating func changeAttributes(_ layer: Int) throws -> String? {
    guard let path = random.percent(10) ? [] : entry(layer) else { return nil }
    let disk = layers[layer].disk(path)
    var isLink = false
    if let (index, file) = layers[layer].file(path) {
      guard hardLinks.isChangeNoticed(path, of: index, layer, layers) else { return nil }
      isLink = file.form.kind == .symbolicLink
    }
    let description: String
    switch random.number(0...3) {
    case 0 where !isLink:
      let mode = UInt32(random.number(0...0o7777))
      try disk.setMode(mode)
      description = "chmod \(String(mode, radix: 8))"
    case 1:
      let owner = UInt32(random.number(0...3))
      try disk.setOwner(owner, group: owner)
      description = "chown \(owner)"
    case 2 where layers[layer].file(path)?.file.form.kind == .regular || layers[layer].directory(path) != nil:
      let value = [UInt8]("value \(random.number(0...99))".utf8)
      try disk.setAttribute("user.comment", value)
      set(["user.comment": value], at: path, layer)
      description = "setxattr"
    default:
      let time = TimeSpec(
        seconds: Int64(random.number(0...2_000_000_000)), nanoseconds: UInt32(random.number(0...999_999_999)))
      try disk.setModified(time)
      description = "utimes \(time.seconds)"
    }
    try layers[layer].refresh(path)
    return "\(description) \(words(path))"
  }

  private mutating func set(_ attributes: [ByteString: [UInt8]], at path: Path, _ layer: Int) {
    if let (index, _) = layers[layer].file(path) {
      layers[layer].edit(file: index) { $0.metadata.attributes.merge(attributes) { $1 } }
    } else {
      layers[layer].edit(path) { $0.metadata.attributes.merge(attributes) { $1 } }
    }
  }
}
