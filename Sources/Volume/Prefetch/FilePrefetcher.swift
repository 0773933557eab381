import Fuse
import Layers
import Posix

/// Reading ahead across files: who reads one small file of a directory after the other is likely to read the
/// next ones, too, so these are put into the kernel's cache before he asks. Then his reads cost no message.
///
/// How many grows only with the files that were asked for themselves: each of them doubles it. So who reads
/// two files of a thousand causes two more to be read, and who reads them all soon meets hardly any that are
/// not there. Who has read directory after directory has the next one's files read ahead from the first on
/// (`SequentialDetector`).
///
/// What is put there is true, or taken back: a change that is told while a file is read shows in its
/// directory's version, and is answered here; one that is told later is taken back after that, as always.
extension Volume {
  /// Files above this size, in bytes, are left to whoever reads them.
  static let largestReadAhead: UInt64 = 64 << 10
  /// As how many files the first one counts where it is a habit to read the others.
  private static let headStart = 5
  /// The most files for one that was asked for.
  private static let mostFiles = 64

  /// Notes that a file's content was asked for that nobody had read.
  func noteFirstRead(of node: NodeID) {
    guard coherence != nil else { return }
    let directory = table.withLock { table -> NodeID? in
      guard let slot = try? table.slot(of: node), let size = table[slot].reportedSize,
        size <= Self.largestReadAhead, let state = table[table[slot].parent].directory, state.isCovered
      else { return nil }
      let directory = table.number(of: table[slot].parent)
      state.lastRead = slot
      if state.firstReads > 0 {
        table.sequentialDetector.goOn(directory)
        state.firstReads = min(state.firstReads + 1, 16)
      } else {
        state.firstReads = table.sequentialDetector.begin(directory) ? Self.headStart : 1
      }
      guard state.firstReads >= 2, !state.isPrefetching else { return nil }
      state.isPrefetching = true
      return directory
    }
    guard let directory else { return }
    _ = readAheads.add { [self] in
      while let files = nextFiles(in: directory) { readAhead(files, in: directory) }
    }
  }

  /// The files to be read ahead; nil when nobody has asked for another one since the last.
  private func nextFiles(in directory: NodeID) -> [NodeID]? {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory), let state = table[slot].directory else { return nil }
      let last = state.lastRead
      state.lastRead = 0
      guard last != 0, table[last].parent == slot else {
        state.isPrefetching = false
        return nil
      }
      let count = min(Self.mostFiles, 1 << (state.firstReads - 1))
      return table.unreadFiles(near: last, count: count, largest: Self.largestReadAhead)
        .map { table.number(of: $0) }
    }
  }

  private func readAhead(_ files: [NodeID], in directory: NodeID) {
    guard let kernel = kernel.withLock({ $0 }) else { return }
    withUnsafeTemporaryAllocation(byteCount: Int(Self.largestReadAhead), alignment: 16) { buffer in
      for file in files {
        let version = version(of: directory)
        guard let content = try? content(of: file, buffer), !content.isEmpty else { continue }
        guard (try? kernel.store(UnsafeRawBufferPointer(content), in: file)) != nil else { continue }
        counters.readAhead.add(1)
        if !isUnchanged(directory, since: version) { try? kernel.invalidateContent(of: file) }
      }
    }
  }

  /// A small file's whole content; the node stays with the file from then on.
  /// - Returns: nil if somebody reads it already, or if the kernel may keep another size of it.
  /// - Throws: what opening and reading it answers.
  private func content(
    of node: NodeID, _ buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> UnsafeMutableRawBufferPointer? {
    let (opened, identity) = try openByName(node)
    let size = try opened.lastSeenSize()
    // What happens to a file by another name is not told by its directory.
    guard opened.wasSingle, size <= buffer.count else { return nil }
    let isWanted = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return table[slot].reportedSize == size && table[slot].isUnread && !table[slot].isSizeDoubtful
    }
    guard isWanted, try opened.read(into: buffer, at: 0) == Int(size),
      let kept = try keep(opened, of: identity, for: node), kept === opened
    else { return nil }
    return UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(size)])
  }
}
