#if Archives
import Posix

/// Hard links: further names of files that come before them in the archive.
extension ContainerListing {
  /// Gives each further name the content of its file, and all names of a file their number.
  mutating func resolveHardLinks() {
    var files: [[UInt8]: Int] = [:]
    // By record: that of the file of which it is a name.
    var owners: [Int: Int] = [:]
    for index in records.indices {
      if let hardLink = records[index].hardLink {
        guard let file = files[Self.normalized(names[hardLink])] else {
          records[index].fault = .noTarget
          continue
        }
        guard isName(records[index], of: records[file]) else { continue }
        if records[index].node.size > 0 { records[file].node.takeContent(of: records[index].node) }
        owners[index] = file
        files[Self.normalized(names[records[index].name])] = file
      } else if records[index].node.kind != .directory {
        files[Self.normalized(names[records[index].name])] = index
      }
    }
    // `ArchiveTree.countNames` counts those that are not replaced by later entries.
    for (name, file) in owners {
      records[file].node.otherNames = 1
      records[name].node = records[file].node
      records[name].attributes = records[file].attributes
      records[name].fault = records[file].fault
    }
  }

  /// Whether an entry that libarchive takes for a further name of a file is one. In a cpio archive all that share an inode
  /// number are taken for it, of whatever kind.
  private func isName(_ link: ContainerRecord, of file: ContainerRecord) -> Bool {
    let (link, file, fault) = (link.node, file.node, link.fault)
    if link.kind != file.kind { return format.kind != .cpio && link.kind == .regular && link.size == 0 }
    guard link.kind == .symbolicLink, fault == nil else { return true }
    return link.size == file.size && link.crc == file.crc
  }

  /// A path without `.` and repeated slashes.
  private static func normalized(_ path: ArraySlice<UInt8>) -> [UInt8] {
    let parts = path.split(separator: EntryName.slash).filter { !$0.elementsEqual(".".utf8) }
    return Array(parts.joined(separator: [EntryName.slash]))
  }
}

extension ArchiveNode {
  fileprivate mutating func takeContent(of other: ArchiveNode) {
    (size, compressedSize, offset) = (other.size, other.compressedSize, other.offset)
    (method, crc, flags) = (other.method, other.crc, other.flags)
  }
}
#endif
