import Posix

/// A line of `/etc/fstab` (fstab(5)) that mounts a bundle.
struct FileSystemTableEntry {
  /// The absolute path of the mount point.
  let mountPoint: [UInt8]
  /// A comma-separated list, with backslashes.
  let options: [UInt8]

  /// The lines about bundles, in order; none if the file cannot be read.
  static func all(in file: [UInt8] = Array("/etc/fstab".utf8)) -> [FileSystemTableEntry] {
    let text = (try? Descriptor.open(file, [.read]).readAll()) ?? []
    return text.split(separator: UInt8(ascii: "\n")).compactMap { FileSystemTableEntry(line: $0) }
  }

  /// Parses `SOURCE MOUNTPOINT TYPE OPTIONS …`; nil for a comment, and for other file systems.
  init?(line: ArraySlice<UInt8>) {
    let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    guard fields.count >= 4, fields[0].first != UInt8(ascii: "#"),
      ["bundlefs", "fuse.bundlefs"].contains(Array(fields[2]).shown)
    else { return nil }
    mountPoint = Array(fields[1]).withoutOctalEscapes
    options = Array(fields[3]).withoutOctalEscapes
  }

  /// The values of its options `substitution=`, each top first.
  var substitutionLists: [[[UInt8]]] {
    var read = MountOptions()
    read.isSloppy = true
    // A line that cannot be mounted is not what mount(8) has passed on.
    do throws(Failure) { try read.read(options) } catch { return [] }
    return read.substitutionLists
  }
}
