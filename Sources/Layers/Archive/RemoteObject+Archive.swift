import CLibrary
import Posix
import RemoteFiles

extension RemoteObject {
  /// As those of a file: other states have another identity.
  var attributes: FileStatus {
    FileStatus(
      identity: FileIdentity(device: 0, inode: identity, born: TimeSpec(seconds: 0, nanoseconds: 0)),
      mode: FileKind.regular.rawValue | 0o644, owner: geteuid(), group: getegid(), size: size,
      modified: modified)
  }
}

extension RemoteFile {
  /// Those of the state that the server is known to have. Asks nothing.
  /// - Throws: ENOENT if it has none any more, or refuses it.
  func attributes() throws(Errno) -> FileStatus {
    guard fault == nil, let present else { throw .noSuchFileOrDirectory }
    return present.attributes
  }
}

extension ArchiveSource {
  /// The state that the server has now.
  convenience init(_ remote: RemoteFile, generation: UInt32) throws(ArchiveError) {
    let object: RemoteObject
    do throws(RemoteFault) { object = try remote.open() } catch { throw ArchiveError(error) }
    try self.init(object, generation: generation)
  }
}

extension ArchiveError {
  /// Whether it says nothing of the archive, but of a server that does not answer, or not rightly.
  var isOfServer: Bool {
    switch self {
    case .remote(.unreachable), .unreadable(.timedOut), .unreadable(.remoteIOError): true
    default: false
    }
  }

  /// Why an archive on a server cannot be read.
  init(_ fault: RemoteFault) {
    if case .local(let error) = fault { self = .unreadable(error) } else { self = .remote(fault) }
  }
}
