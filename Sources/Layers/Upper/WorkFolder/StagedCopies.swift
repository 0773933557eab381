import Posix

/// Copies of files of layers below that wait in the work folder for their names. What takes long, or can fail for lack of
/// space, has been done once all of them are made; what is left of them when this process ends is swept as other entries of
/// the work folder are.
public final class StagedCopies {
  private struct Source: Hashable {
    let layer: Int
    let identity: FileIdentity
  }

  private struct Copy {
    let name: [UInt8]
    /// What was copied.
    let status: FileStatus
  }

  private let upper: UpperLayer
  private let folderName: [UInt8]
  private let folder: SharedDescriptor
  private var copies: [Source: [Copy]] = [:]
  private var count = 0
  private var bytesLeft: UInt64

  /// Makes the folder that they wait in.
  /// - Parameter limit: the most bytes that they may have together.
  /// - Throws: errors of mkdir(2) and open(2).
  public init(in upper: UpperLayer, atMost limit: UInt64) throws(Errno) {
    (self.upper, bytesLeft) = (upper, limit)
    folderName = upper.work.freshName
    folder = try upper.layer.root.withDescriptor { [folderName] _ throws(Errno) in
      try upper.work.withFolder { work throws(Errno) in
        try withCName(folderName) { name throws(Errno) in
          try work.makeDirectory(name, mode: 0o700)
          return SharedDescriptor(try work.open(name, [.pathOnly, .directory, .noFollow]))
        }
      }
    }
  }

  /// Copies a regular file.
  /// - Parameters:
  ///   - source: the directory that contains it.
  ///   - writer: on whose behalf the content is written.
  /// - Throws: EXDEV if it has more bytes than are left of the limit; errors of copying.
  public func add(
    _ name: CName, from source: LayerDirectory, identity: FileIdentity, as writer: EntryOwner
  ) throws(Errno) {
    let file = try source.openFile(name, identity: identity)
    let status = try file.attributes()
    guard status.size <= bytesLeft else { throw .crossDeviceLink }
    bytesLeft -= status.size
    count += 1
    let temporary = Array("\(count)".utf8)
    let copy = try upper.layer.gate.call { () throws(Errno) in
      try withCName(temporary) { name throws(Errno) in try folder.descriptor.createFile(name) }
    }
    copies[Source(layer: source.layer, identity: identity), default: []]
      .append(Copy(name: temporary, status: status))
    try upper.fill(copy, from: file, size: nil, writer, synchronizes: false)
  }

  /// Waits until the disk has all content. The disk has begun with it: a wait for each file right after it was copied
  /// would take longer.
  public func synchronize() throws(Errno) {
    for copy in copies.values.joined() where copy.status.size > 0 {
      try upper.layer.gate.call { () throws(Errno) in
        try withCName(copy.name) { name throws(Errno) in
          try folder.descriptor.open(name, [.pathOnly, .noFollow]).reopened([.read])
            .synchronize(dataOnly: true)
        }
      }
    }
  }

  /// Gives a copy its name.
  /// - Parameter status: of the file below, as it is now.
  /// - Returns: the attributes of the copy; nil if there is none, or the file has changed since it was copied.
  /// - Throws: EEXIST if the parent has an entry of the name.
  func publish(
    _ name: CName, of source: LayerDirectory, _ status: FileStatus, to parent: LayerDirectory,
    _ willPublish: ((FileIdentity) -> Void)?
  ) throws(Errno) -> FileStatus? {
    let key = Source(layer: source.layer, identity: status.identity)
    guard let copy = copies[key]?.popLast(),
      (copy.status.changed, copy.status.size) == (status.changed, status.size)
    else { return nil }
    return try parent.withDescriptor { parent throws(Errno) in
      try withCName(copy.name) { temporary throws(Errno) in
        let path = try folder.descriptor.open(temporary, [.pathOnly, .noFollow])
        if let willPublish { willPublish(try path.attributes().identity) }
        try upper.show(name, in: parent) { () throws(Errno) in
          try folder.descriptor.renameNew(temporary, to: name, in: parent)
        }
        return try path.attributes()
      }
    }
  }

  /// Removes the copies that have got no name. Each in a call of its own, so that none takes long.
  public func close() {
    for copy in copies.values.joined() {
      try? upper.layer.gate.call { () throws(Errno) in
        try withCName(copy.name) { name throws(Errno) in
          try folder.descriptor.remove(name, isDirectory: false)
        }
      }
    }
    try? upper.layer.gate.call { () throws(Errno) in
      try upper.work.withFolder { work throws(Errno) in
        try upper.work.removeTree(folderName, in: work)
      }
    }
  }
}
