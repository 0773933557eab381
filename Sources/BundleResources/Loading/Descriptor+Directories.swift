import Posix

extension Descriptor {
  /// Calls a function with the name of each directory in this one.
  /// - Throws: errors of getdents64(2), or of statx(2) where the file system does not record the kinds.
  func forEachDirectory(_ body: ([UInt8]) -> Void) throws(Errno) {
    try forEachEntry { entry throws(Errno) in
      var kind = entry.kind
      if kind == nil { kind = try attributes(of: entry.name).kind }
      if kind != .directory { return }
      body(Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength)))
    }
  }
}
