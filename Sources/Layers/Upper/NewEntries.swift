import CLibrary
import Posix

/// What a new entry becomes.
enum NewEntry {
  /// A regular file, FIFO, socket or device.
  case node(mode: UInt32, device: UInt64)
  case directory(mode: UInt32)
  case symbolicLink(target: CName)

  var isDirectory: Bool { if case .directory = self { true } else { false } }

  /// Makes the entry.
  /// - Parameter mask: the permission bits that it does not get.
  func make(_ name: CName, in directory: borrowing Descriptor, mask: UInt32) throws(Errno) {
    switch self {
    case .node(let mode, let device): try directory.makeNode(name, mode: mode & ~mask, device: device)
    case .directory(let mode): try directory.makeDirectory(name, mode: mode & ~mask)
    case .symbolicLink(let target): try directory.makeSymbolicLink(name, target: target)
    }
  }

  /// Makes the entry in the work folder, so that only its owner may access it.
  /// - Returns: the entry, opened with `O_PATH`.
  func make(_ name: CName, inWorkFolder folder: borrowing Descriptor) throws(Errno) -> Descriptor {
    if kind == .regular { return try folder.createFile(name).reopened([.pathOnly]) }
    try make(name, in: folder, mask: 0o7077)
    do throws(Errno) {
      let made = try folder.open(name, [.pathOnly, .noFollow])
      // mknod(2), mkdir(2) and symlink(2) return no descriptor.
      guard try made.attributes().kind == kind else { throw .staleFileHandle }
      return made
    } catch {
      try? folder.remove(name, isDirectory: isDirectory)
      throw error
    }
  }

  /// A FIFO, socket or device like one that is copied, which only its owner may access.
  static func likeSpecial(_ status: FileStatus) -> NewEntry {
    .node(mode: status.mode & 0o170000 | 0o600, device: status.rdev)
  }

  private var kind: FileKind? {
    switch self {
    case .node(let mode, _): FileKind(rawValue: mode & 0o170000)
    case .directory: .directory
    case .symbolicLink: .symbolicLink
    }
  }

  /// The permission bits that mknod(2) and mkdir(2) set; nil for a symbolic link.
  var permissions: UInt32? {
    switch self {
    case .node(let mode, _): mode & 0o7777
    case .directory(let mode): mode & 0o1777
    case .symbolicLink: nil
    }
  }
}

extension UpperLayer {
  /// Makes an entry that has no content: a regular file, FIFO, socket or device.
  /// - Parameters:
  ///   - mode: type and permission bits.
  ///   - device: for a device.
  /// - Throws: EEXIST if the name is visible; EPERM for a device 0:0, which would be a whiteout; errors of mknod(2).
  public func makeNode(
    _ name: CName, in directory: MergedDirectory, mode: UInt32, device: UInt64, _ owner: EntryOwner
  ) throws(Errno) {
    if mode & 0o170000 == FileKind.characterDevice.rawValue, device == 0 { throw .notPermitted }
    try make(.node(mode: permitted(mode, for: owner), device: device), name, in: directory, owner)
  }

  /// Makes a regular file.
  /// - Parameter mode: the permission bits.
  /// - Returns: the file, open for reading and writing; nil if it took the place of a whiteout.
  /// - Throws: EEXIST if the name is visible; errors of open(2).
  public func makeFile(
    _ name: CName, in directory: MergedDirectory, mode: UInt32, _ owner: EntryOwner
  ) throws(Errno) -> LayerFile? {
    try refuseVisible(name, in: directory)
    let entry = NewEntry.node(mode: permitted(mode, for: owner) | FileKind.regular.rawValue, device: 0)
    return try directory.top.withDescriptor { parent throws(Errno) in
      do throws(Errno) {
        let file = try makeInPlace(entry, in: parent, owner) { mask throws(Errno) in
          try parent.createFile(name, mode: (entry.permissions ?? 0) & ~mask)
        }
        whiteouts.removeMarker(beside: name, of: directory, in: parent)
        return LayerFile(file, nil, directory.top.gate)
      } catch {
        guard error == .fileExists, try parent.hasDeviceWhiteout(name) else { throw error }
      }
      try makeAside(entry, name, in: parent, owner, isOpaque: false)
      whiteouts.removeMarker(beside: name, of: directory, in: parent)
      return nil
    }
  }

  /// Makes a directory, which is opaque where a layer below has the name, though hidden.
  /// - Throws: EEXIST if the name is visible; errors of mkdir(2).
  public func makeDirectory(
    _ name: CName, in directory: MergedDirectory, mode: UInt32, _ owner: EntryOwner
  ) throws(Errno) {
    try make(.directory(mode: mode), name, in: directory, owner)
  }

  /// Makes a symbolic link.
  /// - Throws: EEXIST if the name is visible; errors of symlink(2).
  public func makeSymbolicLink(
    _ name: CName, in directory: MergedDirectory, target: CName, _ owner: EntryOwner
  ) throws(Errno) {
    try make(.symbolicLink(target: target), name, in: directory, owner)
  }

  /// Adds a name to a file of this layer.
  /// - Parameters:
  ///   - file: open in any way.
  ///   - owner: the user that adds it; nil for this process's user.
  /// - Throws: EEXIST if the name is visible; EMLINK, ENOENT for a file without a name, and other errors of link(2).
  public func makeLink(
    _ name: CName, in directory: MergedDirectory, to file: LayerFile, by owner: EntryOwner? = nil
  ) throws(Errno) {
    let owner = owner ?? EntryOwner(user: user, group: group, umask: 0)
    try refuseVisible(name, in: directory)
    try file.withDescriptor { file throws(Errno) in
      try directory.top.withDescriptor { parent throws(Errno) in
        do throws(Errno) {
          // The directory may need more space.
          try asOwner(owner) { () throws(Errno) in try parent.link(file, as: name) }
        } catch {
          guard error == .fileExists, try parent.hasDeviceWhiteout(name) else { throw error }
          try work.withName { folder, temporary throws(Errno) in
            try folder.link(file, as: temporary)
            try replaceWhiteout(name, in: parent, by: temporary, in: folder, isDirectory: false)
          }
        }
        whiteouts.removeMarker(beside: name, of: directory, in: parent)
      }
    }
  }

  /// - Throws: EEXIST if the name is visible; EINVAL for the name of a marker; EPERM for one that the view hides.
  func refuseVisible(_ name: CName, in directory: MergedDirectory) throws(Errno) {
    if WhiteoutMarker.isMarker(name) { throw .invalidArgument }
    if directory.top.conceals(name) { throw .notPermitted }
    // An entry of this layer makes the system call fail that is about to add another.
    if directory.isAlone { return }
    if try directory.lookup(name) != nil { throw .fileExists }
  }

  private func make(
    _ entry: NewEntry, _ name: CName, in directory: MergedDirectory, _ owner: EntryOwner
  ) throws(Errno) {
    try refuseVisible(name, in: directory)
    let isOpaque = entry.isDirectory ? try directory.isBelow(name) : false
    try directory.top.withDescriptor { parent throws(Errno) in
      try make(entry, name, in: parent, owner, isOpaque: isOpaque)
      // What a directory has below, its opaqueness hides.
      whiteouts.removeMarker(beside: name, of: directory, in: parent)
    }
  }

  private func make(
    _ entry: NewEntry, _ name: CName, in parent: borrowing Descriptor, _ owner: EntryOwner, isOpaque: Bool
  ) throws(Errno) {
    if !isOpaque {
      do throws(Errno) {
        return try makeInPlace(entry, in: parent, owner) { mask throws(Errno) in
          try entry.make(name, in: parent, mask: mask)
        }
      } catch {
        guard error == .fileExists, try parent.hasDeviceWhiteout(name) else { throw error }
      }
    }
    try makeAside(entry, name, in: parent, owner, isOpaque: isOpaque)
  }

  /// Does what a process left undone that died after it had made an entry, or had given it its name.
  public func completeTaking(_ name: CName, in directory: MergedDirectory) {
    try? directory.top.withDescriptor { parent throws(Errno) in
      guard try parent.contains(name), try !parent.hasDeviceWhiteout(name) else { return }
      whiteouts.removeMarker(beside: name, of: directory, in: parent)
    }
  }

  /// - Parameter make: is passed the permission bits that the entry does not get.
  private func makeInPlace<Result: ~Copyable>(
    _ entry: NewEntry, in parent: borrowing Descriptor, _ owner: EntryOwner,
    _ make: (UInt32) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    var mask = entry.permissions.map { $0 & owner.umask & 0o777 } ?? 0
    // The file system applies the ACL instead.
    if mask != 0, try parent.hasDirectoryAttribute(ACLAttribute.default.cName) { mask = 0 }
    return try asOwner(owner) { () throws(Errno) in try make(mask) }
  }

  /// Makes an entry in the work folder, with what it would have inherited from its parent, and moves it into place.
  private func makeAside(
    _ entry: NewEntry, _ name: CName, in parent: borrowing Descriptor, _ owner: EntryOwner, isOpaque: Bool
  ) throws(Errno) {
    try work.withName { folder, temporary throws(Errno) in
      let made = try entry.make(temporary, inWorkFolder: folder)
      do throws(Errno) {
        try inherit(made, entry, from: parent, owner)
        if isOpaque { try whiteouts.makeOpaque(made) }
        try place(temporary, in: folder, at: name, in: parent, isDirectory: entry.isDirectory)
      } catch {
        try? work.removeTree([UInt8](bytesOf: temporary), in: folder)
        throw error
      }
    }
  }

  /// Sets owner, permissions and ACL of a new entry, as the file system does for entries of the parent.
  private func inherit(
    _ made: borrowing Descriptor, _ entry: NewEntry, from parent: borrowing Descriptor, _ owner: EntryOwner
  ) throws(Errno) {
    let attributes = try parent.attributes()
    let givesGroup = attributes.mode & UInt32(S_ISGID) != 0
    let group = givesGroup ? attributes.group : owner.group
    do throws(Errno) { try made.changeOwner(owner.user, group: group) } catch {
      if error != .notPermitted { throw error }
    }
    guard var permissions = entry.permissions else { return }
    if entry.isDirectory, givesGroup { permissions |= UInt32(S_ISGID) }
    let inherited = try InheritedACL(of: parent, mode: permissions)
    try made.changeMode(inherited == nil ? permissions & ~(owner.umask & 0o777) : permissions)
    try inherited?.set(on: made, isDirectory: entry.isDirectory)
  }

  /// Moves an entry from the work folder to a name that is free or has a device whiteout.
  /// - Throws: EEXIST.
  func place(
    _ temporary: CName, in folder: borrowing Descriptor, at name: CName, in parent: borrowing Descriptor,
    isDirectory: Bool
  ) throws(Errno) {
    do throws(Errno) { try folder.renameNew(temporary, to: name, in: parent) } catch {
      guard error == .fileExists, try parent.hasDeviceWhiteout(name) else { throw error }
      try replaceWhiteout(name, in: parent, by: temporary, in: folder, isDirectory: isDirectory)
    }
  }
}

extension MergedDirectory {
  /// Whether a layer below the top part has the name, visible or not, or may have it.
  func isBelow(_ name: CName) throws(Errno) -> Bool {
    if isAlone { return false }
    if hasUnknownBelow { return true }
    for part in partsBelow where try part.mentions(name) { return true }
    return false
  }

  /// Whether the layers below the top part show the name, or may show it.
  func isVisibleBelow(_ name: CName) throws(Errno) -> Bool {
    if isAlone { return false }
    if hasUnknownBelow { return true }
    return try lookup(name, without: [top.layer]) != nil
  }

  /// Whether a whiteout must come where the top part's entry of the name goes.
  func needsWhiteout(_ name: CName) throws(Errno) -> Bool {
    guard try isVisibleBelow(name) else { return false }
    if !foldsNames { return true }
    // One of another spelling hides this one, too.
    return try !hasWhiteoutMarker(name, length: strlen(name), in: 0..<end(ofLayerAt: 0))
  }

  /// The parts of the layers below that of the top part.
  var partsBelow: ArraySlice<LayerDirectory> { parts.dropFirst(end(ofLayerAt: 0)) }

  /// Whether a layer below has failed or is left out: then it is safe to hide what it may have.
  private var hasUnknownBelow: Bool { missing != nil || partsBelow.contains { $0.gate.isSkipped } }
}
