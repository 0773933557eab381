import Posix

/// Hard links: further names of files that come before them in the archive.
extension ContainerListing {
  /// Gives each further name the content of its file, and all names of a file their number.
  mutating func resolveHardLinks() {
    var files: [[UInt8]: Int] = [:]
    // By record: that of the file of which it is a name.
    var owners: [Int: Int] = [:]
    var counts: [Int: Int] = [:]
    for index in records.indices {
      if let hardLink = records[index].hardLink {
        guard let file = files[Self.normalized(names[hardLink])] else {
          records[index].fault = .noTarget
          continue
        }
        records[index].node = records[file].node
        records[index].fault = records[file].fault
        owners[index] = file
        counts[file, default: 0] += 1
        files[Self.normalized(names[records[index].name])] = file
      } else if records[index].node.kind != .directory {
        files[Self.normalized(names[records[index].name])] = index
      }
    }
    for (file, count) in counts { records[file].node.otherNames = UInt8(clamping: count) }
    for (name, file) in owners { records[name].node.otherNames = records[file].node.otherNames }
  }

  /// A path without `.` and repeated slashes.
  private static func normalized(_ path: ArraySlice<UInt8>) -> [UInt8] {
    let parts = path.split(separator: EntryName.slash).filter { !$0.elementsEqual(".".utf8) }
    return Array(parts.joined(separator: [EntryName.slash]))
  }
}
