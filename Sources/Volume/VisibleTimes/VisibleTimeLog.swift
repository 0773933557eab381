import Glibc
import Posix

/// The file that keeps the records of `VisibleTimeTable` from one mount to the next.
///
/// Records are appended, each with one write(2) and with a checksum, so that one that was not written whole is left out. A
/// file with many outdated records is replaced by a new one (rename(2)). What the file says changes times and nothing else.
public struct VisibleTimeLog: Sendable {
  /// Why the file is not used.
  public enum Fault: Error, Equatable {
    case failed(Errno)
    /// It is no file of records.
    case foreign
    /// It belongs to another user, or others may write to it.
    case untrusted
    /// Another mount has it.
    case taken

    /// In words, to be put behind the file's path.
    public var message: String {
      switch self {
      case .failed(let error): "\(error)"
      case .foreign: "it is no record of times"
      case .untrusted: "it belongs to another user, or others may write to it"
      case .taken: "another mount uses it"
      }
    }
  }

  private static let header = Array("bundlefs times 1\n".utf8) + [UInt8](repeating: 0, count: 31)
  /// The most bytes of a file that is read.
  private static let largest =
    header.count + 2 * (VisibleTimeTable.mostNames + 4096) * VisibleTimeRecord.size

  private let folder: SharedDescriptor
  private let name: [UInt8]
  private let temporary: [UInt8]
  private var file: SharedDescriptor
  /// How many records it has.
  private var count = 0

  /// Opens the file, which is made unless there is one.
  /// - Parameters:
  ///   - temporary: the name, in the same folder, of a file that is about to replace it.
  ///   - isSuccessor: whether a predecessor may still have it open.
  init(
    _ name: [UInt8], in folder: SharedDescriptor, temporary: [UInt8], isSuccessor: Bool
  ) throws(Fault) {
    (self.folder, self.name, self.temporary) = (folder, name, temporary)
    do throws(Errno) {
      file = SharedDescriptor(try Self.open(name, in: folder.descriptor))
    } catch {
      throw error == .tooManySymbolicLinkLevels || error == .isDirectory ? .foreign : .failed(error)
    }
    try Self.check(file.descriptor)
    if isSuccessor {
      // Its predecessor may not have ended yet.
      _ = flock(file.descriptor.rawValue, LOCK_EX | LOCK_NB)
    } else if !Self.lock(file.descriptor) || !isPresent {
      throw .taken
    }
  }

  /// Whether the name still leads to the file, which a mount that had it locked before may have replaced.
  private var isPresent: Bool {
    let named = try? withCName(name) { name throws(Errno) in try folder.descriptor.attributes(of: name) }
    return named.map { $0.identity == (try? file.descriptor.attributes())?.identity } ?? false
  }

  /// A mount that has just ended may still have the lock for a moment.
  private static let (attempts, interval): (Int, UInt32) = (500, 10_000)

  private static func lock(_ file: borrowing Descriptor) -> Bool {
    for _ in 0..<attempts {
      // Some file systems have no locks.
      if flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK { return true }
      usleep(interval)
    }
    return false
  }

  private static func open(_ name: [UInt8], in folder: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try folder.open(name, [.readWrite, .append, .noFollow, .nonBlocking, .noControllingTerminal])
    } catch {
      if error != .noSuchFileOrDirectory { throw error }
      let made = try withCName(name) { name throws(Errno) in try folder.createFile(name) }
      try made.writeInOneCall(header)
      try made.setAppending()
      return made
    }
  }

  private static func check(_ file: borrowing Descriptor) throws(Fault) {
    let status: FileStatus
    do throws(Errno) { status = try file.attributes() } catch { throw .failed(error) }
    guard status.isRegular else { throw .foreign }
    if status.owner != geteuid() || status.mode & 0o022 != 0 { throw .untrusted }
  }

  /// Reads the records into a table.
  /// - Returns: whether some were not written whole.
  /// - Throws: `foreign` for another file, or one that is too large.
  mutating func load(into table: inout VisibleTimeTable) throws(Fault) -> Bool {
    let bytes: [UInt8]
    do throws(Errno) { bytes = try file.descriptor.readAll(limit: Self.largest) } catch {
      throw .failed(error)
    }
    guard bytes.count <= Self.largest else { throw .foreign }
    if bytes.count < Self.header.count, Self.header.starts(with: bytes) {
      // The process that made it has died.
      try replace(by: [])
      return false
    }
    guard bytes.starts(with: Self.header) else { throw .foreign }
    let isDamaged = load(bytes[Self.header.count...], into: &table)
    if isDamaged || count > 2 * table.records.count + 4096 { try replace(by: table.records.values) }
    return isDamaged
  }

  private mutating func load(_ bytes: ArraySlice<UInt8>, into table: inout VisibleTimeTable) -> Bool {
    var isDamaged = bytes.count % VisibleTimeRecord.size != 0
    bytes.withUnsafeBytes { bytes in
      var place = 0
      while place + VisibleTimeRecord.size <= bytes.count {
        let record = UnsafeRawBufferPointer(rebasing: bytes[place..<place + VisibleTimeRecord.size])
        place += VisibleTimeRecord.size
        if let record = VisibleTimeRecord(record) { table.load(record) } else { isDamaged = true }
        count += 1
      }
    }
    return isDamaged
  }

  /// Appends records.
  /// - Parameter all: the present ones, should the file have to be replaced.
  mutating func append(
    _ records: [VisibleTimeRecord], of all: [UInt64: VisibleTimeRecord]
  ) throws(Fault) {
    if count > 2 * max(all.count, 4096) + 4096 || count > 2 * VisibleTimeTable.mostNames {
      return try replace(by: all.values)
    }
    var bytes: [UInt8] = []
    for record in records { record.append(to: &bytes) }
    do throws(Errno) { try file.descriptor.writeInOneCall(bytes) } catch { throw .failed(error) }
    count += records.count
  }

  /// Replaces the file, whole or not at all.
  private mutating func replace(by records: some Collection<VisibleTimeRecord>) throws(Fault) {
    var bytes = Self.header
    bytes.reserveCapacity(bytes.count + records.count * VisibleTimeRecord.size)
    for record in records { record.append(to: &bytes) }
    do throws(Errno) { file = try written(bytes) } catch { throw .failed(error) }
    count = records.count
  }

  private func written(_ bytes: [UInt8]) throws(Errno) -> SharedDescriptor {
    try withCName(temporary) { temporary throws(Errno) in
      let made = try folder.descriptor.createFile(temporary)
      do throws(Errno) {
        try bytes.withBytes { bytes throws(Errno) in try made.write(bytes, at: 0) }
        try made.synchronize(dataOnly: true)
        try made.setAppending()
        // Before any other mount can find it.
        _ = flock(made.rawValue, LOCK_EX | LOCK_NB)
        try withCName(name) { name throws(Errno) in
          try folder.descriptor.rename(temporary, to: name, in: folder.descriptor, [])
        }
      } catch {
        try? folder.descriptor.remove(temporary, isDirectory: false)
        throw error
      }
      return SharedDescriptor(made)
    }
  }
}
