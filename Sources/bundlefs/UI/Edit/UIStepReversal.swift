import Layers
import Posix
import WebServer

/// Puts back what the steps of an edit have taken from a layer: all of it or nothing.
struct UIStepReversal {
  private let top: TopLayer

  init(_ top: TopLayer) { self.top = top }

  /// - Parameter steps: become what can be reversed if it fails.
  /// - Returns: the steps that bring back what was there until now.
  /// - Throws: 409 if something else has changed since.
  func reverse(_ steps: inout [UIStep]) throws(WebError) -> [UIStep] {
    for step in steps { try checkUnchanged(step) }
    var done: [UIStep] = []
    for (index, step) in steps.enumerated().reversed() {
      do throws(Errno) { done.append(try reverse(step)) } catch {
        for (offset, step) in done.enumerated().reversed() {
          if let again = try? reverse(step) { steps[steps.count - 1 - offset] = again }
        }
        throw WebError(409, "\(shown(steps[index].path)): \(error)")
      }
    }
    return done
  }

  /// Takes the steps of an edit back that has failed.
  func rollBack(_ steps: [UIStep]) {
    var steps = steps
    guard let undone = try? reverse(&steps) else { return }
    for step in undone { top.upper.discard(step.taken) }
  }

  private func checkUnchanged(_ step: UIStep) throws(WebError) {
    let found: UIStep.Trace?
    do throws(Errno) { found = try UIStep.Trace(at: step.path, in: top.upper) } catch { found = nil }
    if found == step.left { return }
    throw WebError(409, "\(shown(step.path)) has been changed since; revert it instead")
  }

  private func reverse(_ step: UIStep) throws(Errno) -> UIStep {
    guard let parent = try top.folder(at: step.parent) else {
      throw .noSuchFileOrDirectory
    }
    let present = try withCName(step.name) { name throws(Errno) in
      let present = try top.upper.take(name, from: parent)
      do throws(Errno) { try top.upper.putBack(step.taken, as: name, in: parent) } catch {
        try? top.upper.putBack(present, as: name, in: parent)
        throw error
      }
      return present
    }
    return UIStep(
      parent: step.parent, name: step.name, taken: present,
      left: try UIStep.Trace(at: step.path, in: top.upper))
  }
}
