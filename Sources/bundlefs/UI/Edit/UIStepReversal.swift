import Layers
import Posix
import WebServer

/// Puts back what the steps of an edit have taken from a layer: all of it or nothing.
struct UIStepReversal {
  private let top: TopLayer
  private let remains: UIRemains

  init(_ top: TopLayer, _ remains: UIRemains) { (self.top, self.remains) = (top, remains) }

  /// - Parameter steps: become what can be reversed if it fails.
  /// - Returns: the steps that bring back what was there until now.
  /// - Throws: 409 if something else has changed since.
  func reverse(_ steps: inout [UIStep]) throws(WebError) -> [UIStep] {
    for index in steps.indices where !isUnchanged(steps[index], before: steps[(index + 1)...]) {
      throw Self.changed(steps[index])
    }
    var (done, rest) = ([UIStep](), steps)
    while let step = rest.popLast() {
      do throws(Errno) { done.append(try reverse(step, before: steps[(rest.count + 1)...])) } catch {
        steps = rest + [step] + restore(done)
        throw error == .staleFileHandle ? Self.changed(step) : WebError(409, "\(shown(step.path)): \(error)")
      }
    }
    return done
  }

  private static func changed(_ step: UIStep) -> WebError {
    WebError(409, "\(shown(step.path)) has been changed since; revert it instead")
  }

  /// Reverses again what was reversed before another step has failed.
  /// - Returns: the original steps that this has brought back.
  private func restore(_ done: [UIStep]) -> [UIStep] {
    var (steps, stuck) = ([UIStep](), [UIStep]())
    for step in done.reversed() {
      if let again = try? reverse(step, before: done) {
        steps.append(again)
      } else {
        stuck.insert(step, at: 0)
      }
    }
    remains.keep(stuck, of: top)
    return steps
  }

  /// Takes the steps of an edit back that has failed, each that can be. Of what the edit had made and was changed since, what
  /// other programs have made or changed stays. What was taken away and cannot be put back remains as an edit.
  func rollBack(_ steps: [UIStep]) {
    var stuck: [UIStep] = []
    for (index, step) in steps.enumerated().reversed() {
      let later = steps[(index + 1)...]
      if isUnchanged(step, before: later), let undone = try? reverse(step, before: later) {
        top.upper.discard(undone.taken)
      } else if step.taken.isNothing {
        removeParts(step)
      } else {
        stuck.insert(step, at: 0)
      }
    }
    remains.keep(stuck, of: top)
  }

  /// Removes of what a step has made all that is still as it was made.
  private func removeParts(_ step: UIStep) {
    guard case .directory(let mark, let below) = step.left else { return }
    // What is in a directory comes before it.
    let paths = below.keys.sorted { $1.lexicographicallyPrecedes($0) }
    for path in paths {
      guard let mark = below[path] else { continue }
      remove(step.path + path.split(separator: UInt8(ascii: "/")).map { Array($0) }, mark)
    }
    remove(step.path, mark)
  }

  private func remove(_ path: [[UInt8]], _ mark: EntryTrace.Mark) {
    guard let name = path.last, let parent = try? top.folder(at: Array(path.dropLast())) else { return }
    try? withCName(name) { name throws(Errno) in try top.upper.remove(name, marked: mark, from: parent) }
  }

  /// - Parameter later: further steps of the edit, each of which is checked by itself.
  private func isUnchanged(_ step: UIStep, before later: some Sequence<UIStep>) -> Bool {
    guard let found = try? top.trace(of: step.name, at: step.parent) else { return false }
    let below = step.pathsBelow(of: later)
    return found.leavingOut(below) == step.left.leavingOut(below)
  }

  /// - Parameter later: further steps of the edit.
  /// - Throws: ESTALE if another program has changed what the step has left; it stays then.
  private func reverse(_ step: UIStep, before later: some Sequence<UIStep>) throws(Errno) -> UIStep {
    guard let parent = try top.folder(at: step.parent) else { throw .noSuchFileOrDirectory }
    let below = step.pathsBelow(of: later)
    let present = try withCName(step.name) { name throws(Errno) in
      let present = try top.upper.take(name, from: parent)
      do throws(Errno) {
        // By now no other program can replace what is compared.
        let found = try top.upper.trace(of: present).leavingOut(below)
        if found != step.left.leavingOut(below) { throw .staleFileHandle }
        try top.upper.putBack(step.taken, as: name, in: parent)
      } catch {
        do throws(Errno) { try top.upper.putBack(present, as: name, in: parent) } catch {
          // Another program has made an entry of the name.
          let lost = UIStep(
            parent: step.parent, name: step.name, taken: present, former: step.left, left: .nothing)
          if !present.isNothing { remains.keep([lost], of: top) }
        }
        throw error
      }
      return present
    }
    return UIStep(
      parent: step.parent, name: step.name, taken: present, former: step.left, left: step.former)
  }
}

extension TopLayer {
  /// The trace of what the layer has at a name of this spelling.
  func trace(of name: [UInt8], at parent: [[UInt8]]) throws(Errno) -> EntryTrace {
    guard let folder = try folder(at: parent) else { return .nothing }
    return try withCName(name) { name throws(Errno) in try upper.trace(of: name, in: folder) }
  }
}
