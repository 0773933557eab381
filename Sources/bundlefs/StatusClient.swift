import Glibc
import Posix
import Routing

/// What a mount tells of itself, page by page.
enum StatusClient {
  /// Asks a mount.
  /// - Throws: ENOTTY where something else is mounted; what open(2) and ioctl(2) answer.
  static func read(_ form: StatusProtocol.Form, of mountPoint: MountPoint) throws(Errno) -> [UInt8] {
    try read(form, of: mountPoint.open([.read, .directory]))
  }

  /// Asks a directory of a mount.
  /// - Throws: as above; ESTALE where others ask all the time, too.
  static func read(_ form: StatusProtocol.Form, of directory: borrowing Descriptor) throws(Errno) -> [UInt8] {
    for _ in 0..<64 {
      do throws(Errno) { return try readOnce(form, of: directory) } catch {
        if error != .staleFileHandle { throw error }
      }
    }
    throw .staleFileHandle
  }

  private static func readOnce(
    _ form: StatusProtocol.Form, of directory: borrowing Descriptor
  ) throws(Errno) -> [UInt8] {
    var text: [UInt8] = []
    for page in UInt8.min...UInt8.max {
      let answer = try directory.ioctl(
        StatusProtocol.command(form, page: page), size: StatusProtocol.replySize)
      let (part, length) = StatusProtocol.page(in: answer, after: text.count)
      text += part
      if text.count >= length { return text }
    }
    return text
  }
}

/// The control file of a mount.
struct MountedControl {
  let path: [UInt8]
  private let mountPoint: MountPoint
  private let name: [UInt8]

  /// Finds it, whatever its name is.
  init(of mountPoint: MountPoint) throws(Failure) {
    do throws(Errno) {
      name = try Self.name(in: mountPoint)
    } catch {
      throw .failed("\(mountPoint.path.shown): \(error)")
    }
    self.mountPoint = mountPoint
    path = mountPoint.path + [UInt8(ascii: "/")] + name
  }

  /// - Throws: EPROTO for an answer that is no name.
  static func name(in mountPoint: MountPoint) throws(Errno) -> [UInt8] {
    let name = try StatusClient.read(.controlName, of: mountPoint)
    guard StatusProtocol.isControlName(name) else { throw Errno(rawValue: EPROTO) }
    return name
  }

  /// Opens it. Whoever serves the mount, it is a file in it that is opened, and nothing else.
  func open(_ flags: OpenFlags) throws(Errno) -> Descriptor {
    let root = try mountPoint.open([.pathOnly, .directory])
    return try withCName(name) { name throws(Errno) in try root.openRegularFile(name, flags) }
  }

  /// The results that the open control file has now, oldest first.
  /// - Throws: what read(2) answers; EBUSY while somebody writes to it without a pause.
  static func results(of file: borrowing Descriptor) throws(Errno) -> [ResultLine] {
    guard let results = try ResultLines.read(by: { () throws(Errno) in try file.readAll() }) else {
      throw .resourceBusy
    }
    return results
  }
}
