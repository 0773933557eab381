import Posix

/// The mount namespace of `mount -N`: the ID of a process in it, or a namespace file.
enum MountNamespace {
  /// Calls `setns(2)`, which requires a single-threaded process.
  static func enter(_ name: [UInt8]) throws(Failure) {
    let isProcess = name.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let path = isProcess ? Array("/proc/".utf8) + name + Array("/ns/mnt".utf8) : name
    try Failure.naming("mount namespace \(name.shown)") { () throws(Errno) in
      try Mounts.enterNamespace(Descriptor.open(path, [.read]))
    }
  }
}
