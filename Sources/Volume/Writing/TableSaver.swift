import Fuse
import Glibc
import Layers
import Posix

/// Reduces merged tables of strings that programs save to what differs from the layers below.
///
/// While a program has a table open for writing it is an ordinary, whole file of the upper layer (`TablesInSaving`). Once none
/// has, a thread replaces it by the difference. A record in the work folder says what the program has saved over, so that a
/// successor, or the next mount, finishes what a process that died has begun.
final class TableSaver: Sendable {
  struct Saving {
    /// The directory's path.
    let path: [[UInt8]]
    let name: [UInt8]
    let base: TableBase
    let record: [UInt8]
    /// When it is tried to reduce it.
    var next = TimeSpec.monotonic
    /// The milliseconds to wait then if that is not possible.
    var pause: CInt = 50
  }

  static let longestPause: CInt = 2000
  /// Milliseconds without a change after which a table is reduced where the kernel cannot say whether it is open for writing.
  static let idleTime: CInt = 3000

  let store: NodeStore
  let upper: UpperLayer
  let queue: InvalidationQueue
  let kernel: Locked<(any KernelNotifier)?>
  let worker = SerialWorker(name: "table-saver")
  let tables = Locked<[[UInt8]: Saving]>([:])
  let isQueued = Locked(false)
  private let watchdog = Locked<LayerWatchdog?>(nil)
  /// Held during requests that need a table to stay as they have found it, and while one is reduced.
  let requests = Locked(order: 5, ())
  /// Held while a table gets or loses its name or its content, and while one is reduced.
  let changes = Locked(order: 15, ())

  /// - Returns: nil if tables are not merged.
  init?(
    _ store: NodeStore, _ upper: UpperLayer, _ queue: InvalidationQueue,
    _ kernel: Locked<(any KernelNotifier)?>
  ) {
    if store.stack.tables == nil { return nil }
    (self.store, self.upper, self.queue, self.kernel) = (store, upper, queue, kernel)
  }

  /// Continues with what former processes have left. No request may be answered before.
  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog) throws(Errno) {
    signal(SIGIO, SIG_IGN)
    for (name, record) in upper.tableRecords { resume(record, name) }
    try worker.start(watchdog)
    watchdog.add(self)
    self.watchdog.withLock { $0 = watchdog }
    watchdog.arm()
  }

  func stop() {
    watchdog.withLock { $0 = nil }
    worker.stop()
  }

  /// Reduces all tables, since no program has any open, nor will have.
  func finish() {
    LayerAccess.with(.shared) {
      for saving in tables.withLock({ Array($0.values) }) { reduce(saving, isAtEnd: true) }
    }
  }

  // MARK: - Changes

  /// Runs the body, in which no table is reduced, if one of the names is a table's.
  func holding<Result: ~Copyable>(
    _ names: [CName], _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard names.contains(where: store.isTable) else { return try body() }
    return try requests.withLock { _ throws(Errno) in try body() }
  }

  /// A name, as it is spelled in the upper layer, and its directory, which has a part of that.
  typealias Place = (name: CName, directory: MergedDirectory, parent: NodeID)

  /// Runs the body, which gives tables' names to other files, or copies a merged table up.
  func changing<Result: ~Copyable>(
    _ places: [Place], _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let places = places.filter { $0.directory.isTable($0.name) }
    if places.isEmpty { return try body() }
    return try changes.withLock { _ throws(Errno) in
      for place in places { try begin(place.name, in: place.directory, place.parent) }
      return try body()
    }
  }

  /// Records that the content of the upper layer's file is about to be changed.
  func willWrite(to node: NodeID) throws(Errno) {
    let (parent, name) = try store.parent(of: node)
    try withCName(name) { name throws(Errno) in
      guard store.isTable(name), try !store.isDetached(node) else { return }
      let directory = try store.merged(of: parent)
      guard directory.isInUpperLayer else { return }
      try directory.withPresentSpelling(of: name) { name, directory throws(Errno) in
        try changes.withLock { _ throws(Errno) in
          guard !directory.isBeingSaved(name), var base = try directory.tableBase(name) else { return }
          // A layer below has got a table since the program opened this one.
          if base.merged != nil { (base.shown, base.merged) = (base.own, nil) }
          try begin(name, base, in: directory, parent)
        }
      }
    }
  }

  /// Lets a program save a table that it has opened before one of the layers' tables was changed: what it has not changed follows
  /// the layers.
  /// - Returns: false if the node is none, or its name is no table's any more.
  func keepOutdated(_ node: NodeID, _ copyUp: NodeCopyUp) throws(Errno) -> Bool {
    let (parent, name) = try store.parent(of: node)
    let isTable = try withCName(name) { name throws(Errno) in store.isTable(name) }
    guard isTable, try !store.isDetached(node), let table = try store.presentFile(of: node) else {
      return false
    }
    let directory = try copyUp.directory(parent)
    let copy = try withCName(name) { name throws(Errno) in
      try directory.withPresentSpelling(of: name) { name, directory throws(Errno) in
        try changes.withLock { _ throws(Errno) in
          try keep(table, name, in: directory, EntryKey(parent: parent, name), copyUp)
        }
      }
    }
    guard let copy else { return false }
    copyUp.adopt(copy, for: node, keepsNumber: true)
    return true
  }

  private func keep(
    _ table: LayerFile, _ name: CName, in directory: MergedDirectory, _ key: EntryKey, _ copyUp: NodeCopyUp
  ) throws(Errno) -> FileStatus? {
    guard !directory.isBeingSaved(name), case .file = try directory.lookup(name) else { return nil }
    let content = try table.readAll()
    if var base = try directory.tableBase(name) {
      if base.shown != nil { base.shown = content }
      try begin(name, base, in: directory, key.parent)
    }
    return try copyUp.changing([key]) { () throws(Errno) in
      let copy = try upper.makeTable(name, in: directory, content)
      copyUp.own?.recordEntry(copy.identity, at: key, events: 1)
      return copy
    }
  }

  private func begin(_ name: CName, in directory: MergedDirectory, _ parent: NodeID) throws(Errno) {
    if directory.isBeingSaved(name) { return }
    guard let base = try directory.tableBase(name) else { return }
    try begin(name, base, in: directory, parent)
  }

  private func begin(
    _ name: CName, _ base: TableBase, in directory: MergedDirectory, _ parent: NodeID
  ) throws(Errno) {
    let (path, bytes) = (try store.path(of: parent), [UInt8](bytesOf: name))
    let record = try upper.write(TableRecord(path: path + [bytes], base: base))
    directory.beginSaving(bytes, base)
    let saving = Saving(path: path, name: bytes, base: base, record: record)
    tables.withLock { $0[record] = saving }
    watchdog.withLock { $0 }?.arm()
  }

  private func resume(_ record: TableRecord, _ name: [UInt8]) {
    guard let last = record.path.last else { return upper.removeTableRecord(name) }
    let saving = Saving(path: record.path.dropLast(), name: last, base: record.base, record: name)
    do throws(Errno) {
      let directory = try store.stack.directory(at: saving.path)
      let isDone = try withCName(last) { name throws(Errno) in
        for content in [record.base.own, record.result] {
          if let content, try directory.tableHasContent(name, content) { return true }
        }
        return try directory.savedTable(name) == nil
      }
      if isDone { return upper.removeTableRecord(name) }
      var base = record.base
      base.merged = nil
      directory.beginSaving(last, base)
    } catch {
      if error == .noSuchFileOrDirectory || error == .notDirectory { return upper.removeTableRecord(name) }
    }
    tables.withLock { $0[name] = saving }
  }
}

extension NodeStore {
  /// Whether a name is that of tables that are merged.
  func isTable(_ name: CName) -> Bool {
    guard stack.tables != nil else { return false }
    return MergedTables.isTable(name, foldsNames: stack.foldsNames)
  }
}
