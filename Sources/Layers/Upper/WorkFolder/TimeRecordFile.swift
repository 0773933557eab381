import Posix

extension UpperLayer {
  /// The name in the work folder of what keeps the times of a mount with `mtime=visible`. A sweep leaves it alone.
  public static let timeRecordName = Array("times".utf8)

  /// The work folder, in which a file can be kept from one mount to the next, and a name in it that a sweep removes once this
  /// process has ended.
  /// - Throws: errors of the layer.
  public func workFolder() throws(Errno) -> (folder: SharedDescriptor, temporary: [UInt8]) {
    let folder = try layer.gate.call { () throws(Errno) in
      try work.withFolder { folder throws(Errno) in
        SharedDescriptor(try folder.open(".", [.read, .directory]))
      }
    }
    return (folder, work.freshName)
  }
}
