import Fuse
import Posix
import Testing

@testable import Volume

@Suite struct ReadStreamsTests {
  /// A table of directories with small files, in the order in which a walk visits them.
  private struct Tree {
    var table = NodeTable(budget: 1000)
    /// The files by directory.
    private(set) var directories: [[UInt32]] = []
    private var inode: UInt64 = 100

    init(directories: Int, files: Int) {
      table[NodeTable.root].directory?.wasListed = true
      for number in 0..<directories { add(UInt8(number), files: files) }
    }

    mutating func add(_ name: UInt8, files: Int) {
      let slot = table.lookUpDirectory([name], in: NodeTable.root, inodeNumber: 1 << 63 | UInt64(name))
      table[slot].directory?.wasListed = true
      directories.append(
        (0..<files).map { file in
          inode += 1
          let identity = FileIdentity(device: 1, inode: inode, born: TimeSpec(seconds: 0, nanoseconds: 0))
          let found = table.lookUpFile(
            identity, layer: 0, kind: .regular, name: [UInt8(file)], in: slot, inodeNumber: inode)
          table.recordReportedSize(100, of: found)
          return found
        })
    }

    var files: [UInt32] { directories.flatMap { $0 } }
  }

  /// Reads a file; returns whether that continues a stream.
  private func read(_ file: UInt32, _ tree: inout Tree, _ streams: inout ReadStreams) -> Bool {
    let isStream = streams.record(file, in: tree.table)
    tree.table[file].pin()
    return isStream
  }

  @Test("files in the order of a walk are a stream once it has entered two further directories")
  func detection() {
    var (tree, streams) = (Tree(directories: 5, files: 4), ReadStreams())
    let seen = tree.files.map { read($0, &tree, &streams) }
    #expect(seen == (0..<20).map { $0 >= 4 * ReadStreams.threshold })
  }

  /// What is prefetched until the end of the window.
  private func prefetch(_ tree: inout Tree, _ streams: inout ReadStreams) -> [UInt32] {
    var found: [UInt32] = []
    while let files = streams.next(4, in: tree.table) {
      for file in files { tree.table[file].pin() }
      found += files
    }
    return found
  }

  @Test("what is prefetched follows the last READ, into further directories, within the window")
  func window() throws {
    var (tree, streams) = (Tree(directories: 40, files: 4), ReadStreams())
    for file in tree.files.prefix(10) { _ = read(file, &tree, &streams) }
    let found = prefetch(&tree, &streams)
    #expect(found == Array(tree.files.dropFirst(10).prefix(ReadStreams.firstWindow)))
    #expect(!streams.isRunning)
    // The program comes to the end of what was prefetched.
    let end = 10 + ReadStreams.firstWindow
    #expect(read(tree.files[end], &tree, &streams))
    #expect(streams.next(1, in: tree.table) == [tree.files[end + 1]])
    #expect(streams.isRunning)
  }

  @Test("a READ within what is prefetched moves the end of the window")
  func windowEnd() {
    var (tree, streams) = (Tree(directories: 80, files: 4), ReadStreams())
    for file in tree.files.prefix(20) { _ = read(file, &tree, &streams) }
    #expect(prefetch(&tree, &streams) == Array(tree.files[20..<20 + ReadStreams.window]))
    _ = read(tree.files[50], &tree, &streams)
    let end = 51 + ReadStreams.window
    #expect(prefetch(&tree, &streams) == Array(tree.files[20 + ReadStreams.window..<end]))
  }

  @Test("the worker's files are outdated once the program is beyond them")
  func outdated() {
    var (tree, streams) = (Tree(directories: 40, files: 4), ReadStreams())
    for file in tree.files.prefix(20) { _ = read(file, &tree, &streams) }
    #expect(streams.next(4, in: tree.table) == Array(tree.files[20..<24]))
    for file in [20, 23] {
      _ = read(tree.files[file], &tree, &streams)
      #expect(!streams.isOutdated, "\(file)")
      #expect(streams.isBeingRead(tree.table.number(of: tree.files[file])))
    }
    _ = read(tree.files[25], &tree, &streams)
    #expect(streams.isOutdated)
    #expect(streams.next(4, in: tree.table) == Array(tree.files[26..<30]))
    #expect(!streams.isOutdated)
  }

  @Test("a READ's thread and the worker take different files, and leave out none")
  func share() {
    var (tree, streams) = (Tree(directories: 40, files: 4), ReadStreams())
    for file in tree.files.prefix(20) { _ = read(file, &tree, &streams) }
    #expect(streams.takeShare(4, bytes: 250, in: tree.table) { _ in true } == Array(tree.files[20..<22]))
    #expect(streams.takeShare(4, bytes: 250, in: tree.table) { _ in true } == [], "one thread at a time")
    #expect(streams.next(2, in: tree.table) == Array(tree.files[22..<24]))
    streams.finishShare()
    let last = tree.files[26]
    #expect(streams.takeShare(4, bytes: 1000, in: tree.table) { $0 != last } == Array(tree.files[24..<26]))
    #expect(streams.next(2, in: tree.table) == Array(tree.files[26..<28]))
    // Nothing is taken twice, though the program has been read up to file 20 only.
    _ = read(tree.files[20], &tree, &streams)
    #expect(streams.next(2, in: tree.table) == Array(tree.files[21..<23]), "those that were not prefetched")
  }

  @Test("a READ that prefetched for long leaves the rest to the worker, and those after it prefetch nothing")
  func slowShare() {
    var (tree, streams) = (Tree(directories: 60, files: 4), ReadStreams())
    for file in tree.files.prefix(20) { _ = read(file, &tree, &streams) }
    let share = streams.takeShare(8, bytes: .max, in: tree.table) { _ in true }
    #expect(share == Array(tree.files[20..<28]))
    #expect(streams.next(4, in: tree.table) == Array(tree.files[28..<32]))
    for file in share.prefix(2) { tree.table[file].pin() }
    streams.finishShare(leaving: share.dropFirst(2).map { tree.table.number(of: $0) }, wasSlow: true)
    #expect(streams.next(4, in: tree.table) == Array(tree.files[22..<26]))
    #expect(streams.next(4, in: tree.table) == Array(tree.files[26..<28] + tree.files[32..<34]))
    for file in tree.files[20..<34] { tree.table[file].pin() }
    _ = read(tree.files[34], &tree, &streams)
    #expect(
      streams.next(2, in: tree.table) == Array(tree.files[36..<38]), "the program reads the one between")
    for _ in 0..<ReadStreams.pause {
      #expect(streams.takeShare(1, bytes: .max, in: tree.table) { _ in true } == [])
    }
    #expect(streams.takeShare(1, bytes: .max, in: tree.table) { _ in true } == [tree.files[38]])
    // A further READ shows that the program is beyond what was left out.
    streams.finishShare(leaving: [tree.table.number(of: tree.files[38])])
    for file in tree.files[34..<40] { tree.table[file].pin() }
    _ = read(tree.files[40], &tree, &streams)
    #expect(streams.next(1, in: tree.table) == [tree.files[41]])
  }

  @Test("near a READ that continues no stream, its thread and the worker take different files")
  func nearby() {
    var (tree, streams) = (Tree(directories: 1, files: 40), ReadStreams())
    let files = tree.files
    _ = read(files[30], &tree, &streams)
    let (read, odd) = (files[30], Set(stride(from: 1, to: 40, by: 2).map { files[$0] }))
    #expect(streams.takeNearby(read, 3, in: tree.table) == Array(files[31..<34]))
    let share = streams.takeShare(near: read, 5, bytes: 350, in: tree.table) { odd.contains($0) }
    #expect(share == [files[35], files[37], files[39]], "350 bytes are three files")
    #expect(
      streams.takeShare(near: read, 5, bytes: 350, in: tree.table) { _ in true } == [], "one thread at a time"
    )
    #expect(streams.takeNearby(read, 6, in: tree.table) == [31, 32, 33, 34, 36, 38].map { files[$0] })
    streams.finishShare()
    #expect(streams.takeNearby(read, 40, in: tree.table) == Array(files[31...]) + files[..<30].reversed())
  }

  @Test("files that are listed later, before what was prefetched, are prefetched as well")
  func listedLater() {
    var (tree, streams) = (Tree(directories: 40, files: 4), ReadStreams())
    let hidden = tree.directories[6][0].parent(in: tree.table)
    tree.table[hidden].directory?.wasListed = false
    for file in tree.files.prefix(20) { _ = read(file, &tree, &streams) }
    let first = streams.next(8, in: tree.table)
    #expect(first == tree.directories[5] + tree.directories[7])
    for file in first ?? [] { tree.table[file].pin() }
    tree.table[hidden].directory?.wasListed = true
    _ = read(tree.directories[6][0], &tree, &streams)
    #expect(streams.next(4, in: tree.table) == Array(tree.directories[6][1...] + tree.directories[8][..<1]))
  }

  @Test("files with several unread ones between them are no stream")
  func omission() {
    let step = ReadStreams.mostOmitted + 2
    var (tree, streams) = (Tree(directories: 40, files: 8), ReadStreams())
    for index in stride(from: 0, to: tree.files.count, by: step) {
      let isStream = read(tree.files[index], &tree, &streams)
      #expect(!isStream)
    }
  }

  @Test("a file elsewhere is no part of a stream, and the stream continues")
  func elsewhere() {
    var (tree, streams) = (Tree(directories: 30, files: 4), ReadStreams())
    for file in tree.files.prefix(20) { _ = read(file, &tree, &streams) }
    let isStream = [read(tree.files[90], &tree, &streams), read(tree.files[20], &tree, &streams)]
    #expect(isStream == [false, true])
  }

  @Test("a walk visits directories before what is in them, and enters none that was not listed")
  func order() throws {
    let tree = Tree(directories: 3, files: 2)
    let parents = try tree.directories.map { try #require($0.first).parent(in: tree.table) }
    tree.table[parents[1]].directory?.wasListed = false
    var (walk, seen) = (WalkOrder(after: NodeTable.root, steps: 100), [UInt32]())
    while let next = walk.next(in: tree.table) { seen.append(next) }
    #expect(seen == [parents[0]] + tree.directories[0] + [parents[1], parents[2]] + tree.directories[2])
  }
}

extension UInt32 {
  fileprivate func parent(in table: NodeTable) -> UInt32 { table[self].parent }
}
