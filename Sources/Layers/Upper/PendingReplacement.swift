import Posix

/// A file that is written to the work folder, and appears in the layer whole or not at all.
public final class PendingReplacement {
  private let upper: UpperLayer
  private let file: Descriptor
  private let temporary: [UInt8]
  private var isPlaced = false
  /// The bytes so far.
  public private(set) var size: UInt64 = 0

  /// Begins an empty file.
  public init(in upper: UpperLayer) throws(Errno) {
    var name: [UInt8] = []
    file = try upper.layer.gate.call { () throws(Errno) in
      try upper.work.withName { folder, temporary throws(Errno) in
        name = [UInt8](bytesOf: temporary)
        return try folder.createFile(temporary)
      }
    }
    (self.upper, temporary) = (upper, name)
  }

  deinit {
    if isPlaced { return }
    try? upper.layer.gate.call { [upper, temporary] () throws(Errno) in
      try upper.work.withFolder { folder throws(Errno) in _ = try folder.removeEntry(temporary) }
    }
  }

  /// Appends bytes.
  /// - Throws: ENOSPC, EDQUOT, EFBIG and other errors of pwrite(2).
  public func append(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
    try upper.layer.gate.call { () throws(Errno) in try file.write(bytes, at: Int64(clamping: size)) }
    size += UInt64(bytes.count)
  }

  /// Gives the file its attributes and its name, once the disk has its content.
  /// - Parameter attributes: its permission bits, and owner if they are to be set.
  /// - Returns: what the layer had at the name, and the trace of the file.
  public func place(
    as name: CName, in parent: LayerDirectory, _ attributes: AttributeChanges
  ) throws(Errno) -> (taken: TakenEntry, trace: EntryTrace) {
    if WhiteoutMarker.isMarker(name) { throw .invalidArgument }
    let status = try upper.layer.gate.call { () throws(Errno) in
      try file.change(attributes)
      try file.synchronize(dataOnly: true)
      return try file.attributes()
    }
    let taken = try upper.changing(parent) { (parent, times) throws(Errno) in
      let hadEntry = try withCName(temporary) { temporary throws(Errno) in
        try upper.work.withFolder { folder throws(Errno) in
          try upper.exchange(temporary, in: folder, with: name, in: parent)
        }
      }
      isPlaced = true
      // A marker that cannot be taken hides nothing beside the file, and what was taken must be told in any case.
      let marker = try? upper.takeMarker(of: name, in: parent)
      return TakenEntry(entry: hadEntry ? temporary : nil, marker: marker ?? nil, times: times)
    }
    return (taken, EntryTrace(status))
  }
}

extension UpperLayer {
  /// Moves a marker to the work folder, beside an entry that has just got its name.
  func takeMarker(of name: CName, in parent: borrowing Descriptor) throws(Errno) -> [UInt8]? {
    try withMarker(of: name) { marker throws(Errno) in try setAside(marker, in: parent) } ?? nil
  }
}
