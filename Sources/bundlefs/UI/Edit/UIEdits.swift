import Layers
import Posix
import Routing
import WebServer

/// The edits of a mount that can be undone, one at a time.
final class UIEdits: Sendable {
  private struct State {
    var next = 1
    var edits: [Int: UIEdit] = [:]
  }

  let mountPoint: MountPoint
  /// Held while an edit is made, which takes the locks of layers.
  private let state = Locked(order: 5, State())
  /// The most edits that can be undone; what the oldest has kept is removed then.
  private static let mostEdits = 1000

  init(_ mountPoint: MountPoint) { self.mountPoint = mountPoint }

  /// Makes an edit.
  /// - Parameter edit: is passed what gets the changes that a failed edit cannot change back.
  /// - Returns: the reply, with the number by which it can be undone.
  func run(_ edit: (UIRemains) throws(WebError) -> UIEdit) throws(WebError) -> WebResponse {
    try state.withLock { state throws(WebError) in
      let edit = try recordingRemains(in: &state) { remains, _ throws(WebError) in try edit(remains) }
      return Self.reply(record(edit, in: &state), edit)
    }
  }

  /// Calls the body; what has remained of its changes if it fails can be undone as an edit of its own.
  private func recordingRemains(
    in state: inout State, _ body: (UIRemains, inout State) throws(WebError) -> UIEdit
  ) throws(WebError) -> UIEdit {
    let remains = UIRemains()
    do throws(WebError) { return try body(remains, &state) } catch {
      if remains.edits.isEmpty { throw error }
      for edit in remains.edits { _ = record(edit, in: &state) }
      let labels = remains.edits.map { "'\($0.label)'" }.joined(separator: ", ")
      throw WebError(error.status, "\(error.message); not everything could be changed back: undo \(labels)")
    }
  }

  /// The edits that can be undone, the last one last, without those that have undone others.
  func list() -> WebResponse {
    let edits = state.withLock { $0.edits.filter { !$0.value.isUndo } }.sorted { $0.key < $1.key }
    var json = JSONWriter()
    json.array(edits) { json, edit in
      json.object { json in
        json.member("undo", "\(edit.key)")
        json.member("label", edit.value.label)
      }
    }
    return .json(json.text)
  }

  private static func reply(_ id: Int, _ edit: UIEdit) -> WebResponse {
    .json(
      JSONWriter.object { json in
        json.member("undo", "\(id)")
        json.member("label", edit.label)
        if let note = edit.note { json.member("note", note) }
      })
  }

  private func record(_ edit: UIEdit, in state: inout State) -> Int {
    let id = state.next
    state.next += 1
    state.edits[id] = edit
    if state.edits.count > Self.mostEdits, let oldest = state.edits.keys.min(),
      let dropped = state.edits.removeValue(forKey: oldest)
    {
      discard([dropped])
    }
    return id
  }

  /// Undoes an edit. What it had made can be brought back by undoing that.
  func undo(_ id: Int) throws(WebError) -> WebResponse {
    try state.withLock { state throws(WebError) in
      guard let edit = state.edits[id] else {
        throw WebError(404, "this can no longer be undone")
      }
      for (later, other) in state.edits where later > id && !other.isUndo && other.concerns(edit) {
        throw WebError(409, "undo '\(other.label)' first, which came later")
      }
      var undone = try recordingRemains(in: &state) { remains, state throws(WebError) in
        try self.undone(edit, id, remains, &state)
      }
      undone.isUndo = !edit.isUndo
      state.edits[id] = nil
      return Self.reply(record(undone, in: &state), undone)
    }
  }

  private func undone(
    _ edit: UIEdit, _ id: Int, _ remains: UIRemains, _ state: inout State
  ) throws(WebError) -> UIEdit {
    let label = edit.label.hasPrefix("Undid: ") ? String(edit.label.dropFirst(7)) : "Undid: \(edit.label)"
    switch edit.content {
    case .layers(let former, let set):
      return try UILayerChange(mountPoint).set(former, insteadOf: set, label: label)
    case .entries(let steps, let layer):
      let top = try open(layer)
      defer { top.finish() }
      var steps = steps
      do throws(WebError) {
        let undone = try UIStepReversal(top, remains).reverse(&steps)
        return UIEdit(label: label, content: .entries(undone, layer: layer))
      } catch {
        state.edits[id]?.content = .entries(steps, layer: layer)
        throw error
      }
    }
  }

  /// The layer that an edit has changed, which need not be the top one any more.
  private func open(_ layer: [UInt8]) throws(WebError) -> TopLayer {
    try WebError.from { () throws(Failure) in
      let top = try TopLayer(of: mountPoint, at: layer)
      return top
    }
  }

  /// Removes what was kept.
  func end() {
    state.withLock { state in
      discard(Array(state.edits.values))
      state.edits = [:]
    }
  }

  private func discard(_ edits: [UIEdit]) {
    for edit in edits {
      guard case .entries(let steps, let layer) = edit.content,
        steps.contains(where: { !$0.taken.isNothing }),
        let top = try? TopLayer(of: mountPoint, at: layer)
      else { continue }
      for step in steps { top.upper.discard(step.taken) }
      top.upper.close()
    }
  }
}
