import Posix

extension UpperLayer {
  /// Whether two changes of a file have different change times if the file was looked at in between, however fast they
  /// follow each other (multigrain timestamps, Linux 6.13). Else changes within some milliseconds can have the same.
  public var distinguishesChanges: Bool {
    (try? layer.root.withDescriptor { root throws(Errno) in
      let file = try withCName(root.procPath) { path throws(Errno) in try Descriptor.temporary(in: path) }
      var former = try file.attributes().changed
      for round in 0..<8 {
        _ = try file.writeOnce([0], at: Int64(round))
        let present = try file.attributes().changed
        if present == former { return false }
        former = present
      }
      return true
    }) ?? false
  }
}
