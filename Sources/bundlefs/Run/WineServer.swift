import Glibc
import Posix

/// The running wineserver of a prefix: a process that opens the files for all Wine programs of the prefix, in its own
/// mount namespace.
struct WineServer {
  /// 0 if it has no ID in this process's PID namespace.
  let process: pid_t

  /// Finds the server by its lock, as `wineserver -k` does.
  /// - Returns: nil if none runs.
  init?(of prefix: [UInt8]) {
    for lock in Self.locks(of: prefix) {
      guard let owner = Self.owner(ofLock: lock) else { continue }
      process = owner
      return
    }
    return nil
  }

  /// The files of which a server locks one.
  private static func locks(of prefix: [UInt8]) -> [[UInt8]] {
    guard let identity = try? Descriptor.open(prefix, [.pathOnly]).attributes().identity else { return [] }
    let (device, inode) = (String(identity.device, radix: 16), String(identity.inode, radix: 16))
    var folders = ["/tmp/.wine-\(getuid())", "/run/user/\(getuid())/wine"].map { Array($0.utf8) }
    // Debian's server makes a folder with a random name where a user has none in /run/user.
    if let name = try? Descriptor.open(prefix + "/wineserver".utf8, fileFlags).readToEnd(),
      !name.contains(UInt8(ascii: "/"))
    {
      folders.append("/tmp/".utf8 + name)
    }
    return folders.map { $0 + "/server-\(device)-\(inode)/lock".utf8 }
  }

  private static let fileFlags: OpenFlags = [.read, .noFollow, .nonBlocking]

  /// The process that has locked a file of this user. Another user's is none, since he could hinder this one by it.
  private static func owner(ofLock path: [UInt8]) -> pid_t? {
    guard let file = try? Descriptor.open(path, fileFlags), (try? file.attributes())?.owner == getuid() else {
      return nil
    }
    var query = flock()
    (query.l_type, query.l_whence, query.l_len) = (Int16(F_WRLCK), Int16(SEEK_SET), 1)
    guard fcntl(file.rawValue, F_GETLK, &query) == 0, query.l_type != Int16(F_UNLCK) else { return nil }
    return query.l_pid
  }

  /// Ends the server and with it the programs of the prefix.
  func end() { if process > 0 { kill(process, SIGINT) } }
}
