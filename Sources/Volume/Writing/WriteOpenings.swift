import Fuse
import Posix

/// How often nodes are open for writing, in a mount whose kernel sends OPEN and RELEASE. In shared memory, too, as
/// `OpeningRecord` describes: programs keep open what they have, when this process dies.
struct WriteOpenings {
  private struct Opening {
    var count = 0
    /// In the record; nil if it had no room, or if no successor is to come.
    let slot: Int?
  }

  private var openings: [NodeID: Opening] = [:]
  private var record: OpeningRecord?

  /// - Parameter memory: where a successor finds what is open, and what a predecessor has left there.
  init(_ memory: SharedMemory?) {
    record = memory.map { OpeningRecord($0) }
    for opening in record?.all ?? [] {
      openings[opening.node] = Opening(count: opening.counts.all, slot: opening.slot)
    }
  }

  var nodes: [NodeID] { Array(openings.keys) }

  func hasWriter(_ node: NodeID) -> Bool { openings[node] != nil }

  /// Counts an OPEN, unless a predecessor has, which did not reply.
  mutating func open(_ request: Passthrough.Request) {
    if record?.isCounted(request.number) == true { return }
    let node = request.node
    change(openings[node] ?? Opening(slot: record?.add(node)), by: 1, of: node, for: request.number)
  }

  /// Counts a RELEASE, as `open`.
  mutating func close(_ request: Passthrough.Request) {
    guard record?.isCounted(request.number) != true, let opening = openings[request.node] else { return }
    change(opening, by: -1, of: request.node, for: request.number)
  }

  /// Undoes an OPEN that has failed, or of which the kernel takes no notice.
  mutating func undo(_ request: Passthrough.Request) {
    record?.finish(request.number)
    guard let opening = openings[request.node] else { return }
    change(opening, by: -1, of: request.node, for: nil)
  }

  /// To be called when the reply to an OPEN or RELEASE has been sent.
  mutating func finish(_ request: Passthrough.Request) { record?.finish(request.number) }

  /// Forgets a node that the kernel has forgotten, and that therefore is not open.
  mutating func forget(_ node: NodeID) {
    guard let opening = openings[node] else { return }
    change(opening, by: -opening.count, of: node, for: nil)
  }

  private mutating func change(_ opening: Opening, by number: Int, of node: NodeID, for request: UInt64?) {
    var opening = opening
    opening.count = max(0, opening.count + number)
    openings[node] = opening.count == 0 ? nil : opening
    guard let slot = opening.slot else { return }
    record?.setFile(nil, at: slot)
    record?.set(OpeningRecord.Counts(all: opening.count), at: slot, for: request)
  }
}
