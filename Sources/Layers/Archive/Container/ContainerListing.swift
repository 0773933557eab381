#if Archives
import Posix

/// An entry of a container, as its listing has it.
struct ContainerRecord: ArchiveRecord {
  var name: Range<Int>
  /// The path of a file of which this is a further name.
  var hardLink: Range<Int>?
  /// Without a name and a place in a tree.
  var node = ArchiveNode()
  var attributes: UInt32 = 0
  /// Why it cannot be shown.
  var fault: SkipReason?

  var size: UInt64 { node.size }
  var mode: UInt32 { UInt32(node.mode) }
  func modified(_ clock: inout DOSTime) -> Int64 { node.modified }
  func node(_ clock: inout DOSTime) -> ArchiveNode { node }
}

/// The entries of a container in the order of the archive.
///
/// Those of a plain archive are found by their headers. Of any other, all content is decoded, since only the checksums of
/// that show what a later state of the archive has in common with this one.
struct ContainerListing {
  var records: [ContainerRecord] = []
  /// The names to which records refer.
  private(set) var names: [UInt8] = []
  /// The targets of symbolic links.
  private(set) var targets: [UInt8] = []
  private(set) var hasHardLinks = false
  /// Whether any content can only be decoded in the order of the archive.
  private(set) var hasSequentialContent = false
  private(set) var format: ContainerFormat
  /// The owners of the entries, to which records refer.
  private(set) var attributeTable = ArchivedAttributeTable()
  private let owners: ArchiveOwners
  /// Whether another tar archive follows, whose entries are not among the records.
  private(set) var hasAppended = false
  /// The end of the content that is in the file as it is.
  private var end: UInt64 = 0

  /// - Parameter progress: receives the bytes of the file that were read, and its size.
  /// - Returns: nil if the file is no container.
  init?(
    _ source: ArchiveSource, _ owners: ArchiveOwners = .mounter,
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(ArchiveError) {
    guard let format = try ContainerFormat.detect(in: source) else { return nil }
    (self.format, self.owners) = (format, owners)
    if Libarchive.functions == nil {
      throw .unsupported(
        "a \(format.name) archive, which needs libarchive (package libarchive13); it is not installed")
    }
    let reader = try Self.reader(of: source, format)
    var appended: AppendedArchiveSearch?
    do throws(Errno) {
      while try reader.nextHeader() {
        progress(reader.stream.progress, source.size)
        if reader.header.isEncrypted { throw .permissionDenied }
        try add(reader, source, progress)
      }
      // The checksum of the last bytes follows them.
      if reader.format.compression != .none {
        appended = try AppendedArchiveSearch(reader.stream, from: UInt64(max(0, reader.position)))
      }
    } catch { throw failure(error, reader, source) }
    self.format = reader.firstFormat
    if self.format.kind == .tar {
      hasAppended = (appended ?? AppendedArchiveSearch(source, from: UInt64(max(0, reader.position)))).isFound
    }
    if format.kind == .tar, format.isPlain, try !isComplete(in: source, Int64(reader.position)) {
      throw .damagedContainer("it ends without the zeros that mark the end; a part may be missing")
    }
    if records.isEmpty, [.rar, .rar5].contains(format.kind) {
      throw .damagedContainer("it ends before its first entry; a part may be missing")
    }
    if end > source.size { throw .damagedContainer("it ends within a file; a part may be missing") }
    if hasHardLinks { resolveHardLinks() }
  }

  private static func reader(
    of source: ArchiveSource, _ format: ContainerFormat
  ) throws(ArchiveError) -> ContainerReader {
    if let fault = try format.fault(of: source) { throw fault }
    do throws(Errno) { return try ContainerReader(source, format) } catch {
      throw error == .notSupported ? unreadable(format) : .unreadable(error)
    }
  }

  private static func unreadable(_ format: ContainerFormat) -> ArchiveError {
    .unsupported("a \(format.name) archive, which this libarchive cannot read")
  }

  /// Adds the entries to an index.
  func addEntries(to builder: inout ArchiveIndexBuilder) {
    builder.attributeTable = attributeTable
    names.withUnsafeBytes { names in
      for record in records {
        let name = UnsafeRawBufferPointer(rebasing: names[record.name])
        if let fault = record.fault { builder.reject(name, fault) } else { builder.add(record, named: name) }
      }
    }
  }

  private func failure(_ error: Errno, _ reader: ContainerReader, _ source: ArchiveSource) -> ArchiveError {
    guard source.isUnchanged else { return .changing }
    let message = reader.message ?? "libarchive cannot read it"
    let hasEncryption = [.sevenZip, .rar, .rar5].contains(format.kind)
    if reader.header.isEncrypted || hasEncryption && message.contains("encrypted") {
      return ContainerFormat.encrypted(format.kind)
    }
    // Of a later part.
    if error == .notSupported { return Self.unreadable(reader.format) }
    if error != .ioError { return .unreadable(error) }
    if reader.isOutOfOrder {
      return .unsupported(
        "an image whose parts are not in the order in which libarchive can read them; mount the image by 'mount -o loop', "
          + "and use its folder as the layer")
    }
    if format.kind == .sevenZip, let fault = sevenZipFault(message, source) { return fault }
    if records.isEmpty, format.compression != .none, message.contains("Unrecognized archive format") {
      return .unsupported("compressed, but neither a tar nor a cpio archive")
    }
    return .damagedContainer(message)
  }

  private func sevenZipFault(_ message: String, _ source: ArchiveSource) -> ArchiveError? {
    if let header = try? SevenZipHeader(in: source), header.archiveSize > source.size {
      return .damagedContainer("its table of contents would lie behind its end; a part may be missing")
    }
    return SevenZipHeader.unsupportedMethod(in: message).map { .unsupported($0) }
  }

  /// Whether a block of zeros follows the last entry: an archive that is being written lacks it.
  private func isComplete(in source: ArchiveSource, _ position: Int64) throws(ArchiveError) -> Bool {
    guard position >= 512, UInt64(position) - 512 >= end, UInt64(position) <= source.size else {
      return false
    }
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(512) { buffer throws(Errno) in
        try source.read(into: buffer, at: UInt64(position) - 512)
        return buffer.allSatisfy { $0 == 0 }
      }
    } catch { throw .unreadable(error) }
  }

  private mutating func add(
    _ reader: ContainerReader, _ source: ArchiveSource, _ progress: (UInt64, UInt64) -> Void
  ) throws(Errno) {
    let header = reader.header
    guard let path = header.path else {
      return records.append(ContainerRecord(name: append([]), fault: .empty))
    }
    var record = ContainerRecord(name: append(path))
    record.node.modified = header.modified
    record.node.flags = .isInContainer
    // A 7z archive can lack the type, or have one that is none.
    let kind = FileKind(rawValue: header.mode & 0o170000) ?? .regular
    record.node.mode = UInt16(kind.rawValue | header.mode & owners.modeBits)
    if owners.areServed { addAttributes(header, &record) }
    if let hardLink = header.hardLink {
      record.hardLink = append(hardLink)
      hasHardLinks = true
    }
    // Of a further name, too: in cpio archives the last name of a file has the content.
    try describe(&record, reader, source, progress)
    records.append(record)
  }

  private mutating func append(_ bytes: some Sequence<UInt8>) -> Range<Int> {
    let start = names.count
    names += bytes
    return start..<names.count
  }

  private mutating func describe(
    _ record: inout ContainerRecord, _ reader: ContainerReader, _ source: ArchiveSource,
    _ progress: (UInt64, UInt64) -> Void
  ) throws(Errno) {
    switch record.node.kind {
    case .directory: break
    case .symbolicLink: addTarget(reader.header.linkTarget, &record)
    case .regular: try addContent(&record, reader, source, progress)
    default:
      if reader.header.isWhiteout { makeWhiteout(&record) } else { addDevice(reader.header, &record) }
    }
  }

  private mutating func addAttributes(_ header: EntryFields, _ record: inout ContainerRecord) {
    if let attributes = header.attributes(owners) {
      record.attributes = attributeTable.number(of: attributes)
    } else {
      // It belongs to the mounting user then, whose rights it must not give.
      record.node.mode &= 0o171777
    }
  }

  private mutating func addDevice(_ header: EntryFields, _ record: inout ContainerRecord) {
    guard record.node.isDevice, owners.servesDevices, let device = header.device else {
      return record.fault = .special
    }
    // The kernel never asks again what device a node is, so that another one must be another node.
    record.node.crc = device
    record.node.flags.insert(.hasNoChecksum)
    record.node.offset = UInt48.max - UInt64(records.count)
  }

  private mutating func addTarget(_ target: UnsafeRawBufferPointer?, _ record: inout ContainerRecord) {
    guard let target, !target.isEmpty, target.count < 4096 else { return record.fault = .noTarget }
    record.node.method = Container.linkTarget
    record.node.mode = UInt16(FileKind.symbolicLink.rawValue | 0o777)
    (record.node.offset, record.node.size) = (UInt64(targets.count), UInt64(target.count))
    record.node.compressedSize = record.node.size
    record.node.crc = target.crc32()
    targets += target
  }

  /// A device 0/0 is what overlayfs has where OCI images have `.wh.NAME`.
  private mutating func makeWhiteout(_ record: inout ContainerRecord) {
    let path = names[record.name]
    let start = path.lastIndex(of: EntryName.slash).map { $0 + 1 } ?? path.startIndex
    record.name = append(Array(path[..<start]) + WhiteoutMarker.prefix + Array(path[start...]))
    record.node.mode = UInt16(FileKind.regular.rawValue)
    record.node.offset = UInt48.max - UInt64(records.count)
  }

  private mutating func addContent(
    _ record: inout ContainerRecord, _ reader: ContainerReader, _ source: ArchiveSource,
    _ progress: (UInt64, UInt64) -> Void
  ) throws(Errno) {
    let header = reader.header
    record.node.size = header.size
    record.node.compressedSize = header.size
    // Of an empty file, just a number.
    record.node.offset = UInt48.max - UInt64(reader.ordinal)
    // The index skips what is too large.
    if header.size == 0 || header.size > UInt64(Int64.max) { return }
    let inFile = reader.format.isPlain ? try reader.contentPosition(in: source) : nil
    if let inFile {
      addStored(&record, header, inFile, headerPosition: reader.headerPosition)
    } else {
      record.node.method = Container.sequential
      record.node.offset = UInt64(reader.ordinal)
      record.node.crc = try Self.checksum(reader, source, progress)
      hasSequentialContent = true
    }
  }

  private mutating func addStored(
    _ record: inout ContainerRecord, _ header: EntryFields, _ position: UInt64, headerPosition: Int64
  ) {
    record.node.flags.insert(.hasNoChecksum)
    if header.isSparse {
      record.node.method = Container.sparse
      record.node.offset = UInt64(max(0, headerPosition))
    } else {
      record.node.offset = position
      end = max(end, position.addingReportingOverflow(header.size).partialValue)
    }
  }

  private static func checksum(
    _ reader: ContainerReader, _ source: ArchiveSource, _ progress: (UInt64, UInt64) -> Void
  ) throws(Errno) -> UInt32 {
    var (checksum, reported): (UInt32, UInt64) = (0, 0)
    while let (bytes, count) = try reader.nextRun(atMost: UInt64(Int64.max)) {
      checksum = bytes?.crc32(after: checksum) ?? UInt32.crc32(afterZeros: count, checksum)
      if reader.offset - reported >= 1 << 20 {
        reported = reader.offset
        progress(reader.stream.progress, source.size)
      }
    }
    return checksum
  }
}
#endif
