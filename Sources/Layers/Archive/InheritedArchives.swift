import CLibrary
import Posix
import RemoteFiles

/// The states of an archive that a predecessor had open.
struct InheritedArchives {
  /// The present state, unless it was overwritten since.
  private(set) var present: ArchiveIndex?
  private(set) var former: [ArchiveIndex] = []
  /// For a state that is read anew: nothing that the kernel knows has its inode numbers.
  private(set) var nextInode: UInt64?
  private(set) var nextGeneration: UInt32 = 0

  /// - Parameters:
  ///   - isInner: whether the archive is stored in another one: such a one is read anew.
  ///   - remote: the archive on a server; nil for a file of this machine.
  init(
    _ registry: ArchiveRegistry?, layer: Int, folder: [[UInt8]], encoding: NameEncoding?,
    _ owners: ArchiveOwners, isInner: Bool, _ remote: RemoteFile?
  ) {
    guard let registry else { return }
    nextInode = registry.nextInode(of: layer)
    for (place, record) in registry.records(of: layer) {
      let numbers = Descriptor(owning: record.numbers)
      let assigned = ArchiveIndex.numbers(in: numbers)
      nextGeneration = max(nextGeneration, record.generation &+ 1)
      let registration = ArchiveRegistration(registry, place, numbers)
      guard let assigned,
        let source = try? Self.source(record, remote)
      else { continue }
      source.registration.withLock { $0 = registration }
      guard !isInner, source.isAsRecorded(record),
        let index = try? ArchiveIndex.restore(
          source, folder: folder, encoding: encoding, numbers: assigned,
          owners: owners)
      else { continue }
      if record.isPresent == 1, present == nil { present = index } else { former.append(index) }
    }
  }
}

extension InheritedArchives {
  private static func source(
    _ record: ArchiveRegistry.Record, _ remote: RemoteFile?
  ) throws(ArchiveError) -> ArchiveSource {
    let file = Descriptor(owning: record.file)
    guard let remote else { return try ArchiveSource(file, generation: record.generation) }
    guard let object = remote.restore(file, isPresent: record.isPresent == 1) else { throw .noArchive }
    return try ArchiveSource(object, generation: record.generation)
  }
}

extension ArchiveSource {
  fileprivate func isAsRecorded(_ record: ArchiveRegistry.Record) -> Bool {
    attributes.size == record.size && attributes.modified.seconds == record.modified
      && attributes.modified.nanoseconds == record.modifiedNanoseconds
  }
}
