import Fuse
import Layers
import Posix

/// Records in a successor's nodes what a predecessor has done to the upper layer and did not live to record.
///
/// Each intent is compared with the layer, so that one which was recorded, or of a change that was not made, has no
/// effect.
struct IntentRecovery {
  let copyUp: NodeCopyUp
  private var store: NodeStore { copyUp.store }

  /// To be called before any request is processed. Asks no layer but the upper one.
  func run() {
    let intents = copyUp.intents?.nodeIntents ?? []
    // Names of directories are needed to find what is in them.
    for intent in intents where intent.kind != .copyUp { finishRename(intent) }
    for intent in intents where intent.kind == .copyUp { finishCopy(intent) }
  }

  private func finishRename(_ intent: NodeIntent) {
    guard store.hasName(intent.source, intent.node), isMade(intent) else { return }
    store.record(intent)
  }

  private func isMade(_ intent: NodeIntent) -> Bool {
    guard upperStatus(at: intent.target)?.identity == intent.moved else { return false }
    let atSource = upperStatus(at: intent.source)?.identity
    return intent.kind == .exchange ? atSource == intent.exchanged : atSource != intent.moved
  }

  private func finishCopy(_ intent: NodeIntent) {
    guard store.hasName(intent.source, intent.node), (try? store.isInUpperLayer(intent.node)) == false,
      let copy = upperStatus(at: intent.target), copy.identity == intent.moved
    else { return }
    copyUp.adopt(copy, for: intent.node, keepsNumber: intent.keepsNumber)
  }

  private func upperStatus(at key: EntryKey) -> FileStatus? {
    guard let path = try? store.path(of: key.parent), let directory = try? store.stack[0].directory(at: path)
    else { return nil }
    return try? withCName(key.name) { name throws(Errno) in
      try (directory.part(of: 0, with: name, nil) ?? directory.top).attributes(of: name)
    }
  }
}

extension NodeStore {
  /// Records that the mount has renamed or exchanged entries.
  func record(_ renaming: NodeIntent) {
    if renaming.kind == .exchange {
      recordExchange(renaming.source, renaming.target)
    } else {
      recordRename(of: renaming.source, to: renaming.target)
    }
  }
}
