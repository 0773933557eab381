import CLibrary
import Posix

/// The folder where entries are made that must appear whole: in the upper layer, or in another directory of its mount
/// (`WorkDirectory`). No view shows it, since its name begins as a whiteout marker does.
///
/// Only this process's user may enter it, so that no other user can exchange what is made in it before it gets its owner and
/// its mode. It is opened once, checked, and used by that descriptor.
///
/// An entry is named after the process that makes it, so that a sweep leaves those of other running processes alone.
final class WorkFolder: Sendable {
  static let name: StaticString = ".wh..wh.bundlefs-work"
  let layer: DirectoryLayer
  /// Whether users who may write to the layer's root count as this process's own.
  let trustsOthers: Bool
  private let maker = ProcessIdentity.current
  /// The folder, and the root that it was opened in.
  private let opened = Locked<(root: LayerDirectory, folder: SharedDescriptor)?>(nil)

  init(_ layer: DirectoryLayer, trustsOthers: Bool) {
    (self.layer, self.trustsOthers) = (layer, trustsOthers)
  }

  /// Calls the body with the directory that contains the folder, by one call on the layer's gate.
  func withPlace<Result: ~Copyable>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try layer.root.withDescriptor { root throws(Errno) in try withPlace(from: root, body) }
  }

  private func withPlace<Result: ~Copyable>(
    from root: borrowing Descriptor, _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let place = layer.workDirectory else { return try body(root) }
    let directory = try Self.open(place, from: root)
    return try body(directory)
  }

  private static func open(
    _ place: WorkDirectory, from root: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    try withCName(place.path) { path throws(Errno) in
      try root.open(path, [.pathOnly, .directory, .noFollow])
    }
  }

  /// - Throws: EXDEV if nothing can be renamed from the folder into the layer; what opening its place throws.
  func checkPlace() throws(Errno) {
    guard let work = layer.workDirectory else { return }
    try layer.root.withDescriptor { root throws(Errno) in
      try withPlace(from: root) { place throws(Errno) in
        let (own, other) = (try root.attributes(), try place.attributes())
        if own.identity.device != other.identity.device { throw .crossDeviceLink }
        // Another mount covers it, which the layer's clone does not have.
        if let identity = work.identity, identity != other.identity { throw .crossDeviceLink }
        if try place.mountID() != root.mountID() { throw .crossDeviceLink }
      }
    }
  }

  /// Calls the body with the folder and a name that is free in it. Makes no call on a gate: the caller does.
  func withName<Result: ~Copyable>(
    _ body: (borrowing Descriptor, CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try withCName(freshName) { name throws(Errno) in
      try withFolder { folder throws(Errno) in try body(folder, name) }
    }
  }

  /// Calls the body with the folder, and again with a new one if it was removed.
  func withFolder<Result: ~Copyable>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let folder = try folder()
    do throws(Errno) { return try body(folder.descriptor) } catch {
      // The folder can have been removed from outside.
      guard error == .noSuchFileOrDirectory, try folder.descriptor.attributes().links == 0 else {
        throw error
      }
      close()
      return try body(try self.folder().descriptor)
    }
  }

  /// A name that no other process makes, and that no user can foresee.
  var freshName: [UInt8] {
    Array("\(maker.id)-\(maker.start)-\(String(UInt64.random(in: 0...(.max)), radix: 16))".utf8)
  }

  private func folder() throws(Errno) -> SharedDescriptor {
    let root = layer.root
    let known = opened.withLock { $0.flatMap { $0.root === root ? $0.folder : nil } }
    if let known { return known }
    guard case .descriptor(let handle) = root.backing else { throw .readOnlyFileSystem }
    let folder = SharedDescriptor(
      try withPlace(from: handle.descriptor) { place throws(Errno) in try make(in: place) })
    opened.withLock { $0 = (root, folder) }
    return folder
  }

  private func close() { opened.withLock { $0 = nil } }

  static var path: CName { name.cName }

  /// Whether an entry of the layer's root is the folder.
  static func isName(_ name: CName) -> Bool { strcmp(name, path) == 0 }

  // MARK: - The end

  /// Removes the folder if it is empty.
  /// - Parameter isOwn: whether this process, or one that it has followed, has locked it. Else it stays if any process has.
  func remove(isOwn: Bool) {
    close()
    try? withPlace { root throws(Errno) in
      guard let folder = try open(in: root) else { return }
      let locked = try folder.open(".", [.read, .directory])
      if !isOwn, try !locked.lock() { return }
      // Locked until it is removed: a mount that had locked it in between would lose it.
      try withExtendedLifetime(locked) { () throws(Errno) in
        try? folder.remove(WhiteoutDevice.path, isDirectory: false)
        try root.keepingTimes { () throws(Errno) in try root.remove(Self.path, isDirectory: true) }
      }
    }
  }
}
