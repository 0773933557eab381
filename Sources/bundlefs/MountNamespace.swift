import Posix

/// The mount namespace that `mount -N` names.
enum MountNamespace {
  /// Goes there; all paths then are that namespace's. For a process of one thread only.
  /// - Parameter name: a process in it, or a file that stands for it.
  static func enter(_ name: [UInt8]) throws(Failure) {
    let isProcess = name.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let path = isProcess ? Array("/proc/".utf8) + name + Array("/ns/mnt".utf8) : name
    do throws(Errno) {
      try withCName(path) { path throws(Errno) in try Mounts.enterNamespace(Descriptor.open(path, [.read])) }
    } catch {
      throw .failed("mount namespace \(name.shown): \(error)")
    }
  }
}
