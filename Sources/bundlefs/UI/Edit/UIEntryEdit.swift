import Layers
import Posix
import WebServer

/// Overrides, reverts and hides paths in the top layer: all of them or none.
struct UIEntryEdit {
  enum Action: String {
    case override, revert, hide

    fileprivate func label(_ names: String, _ layer: String) -> String {
      switch self {
      case .override: "Copied \(names) to \(layer)"
      case .revert: "Reverted \(names)"
      case .hide: "Hid \(names)"
      }
    }
  }

  private let top: TopLayer
  private let action: Action

  /// - Parameter paths: relative to the mount's root.
  static func run(
    _ action: Action, _ paths: [[[UInt8]]], of mountPoint: MountPoint
  ) throws(WebError) -> UIEdit {
    let top = try WebError.from { () throws(Failure) in try TopLayer(of: mountPoint) }
    defer { top.finish() }
    let given = paths.map { mountPoint.path + [UInt8(ascii: "/")] + $0.joinedPath }
    let checked = try WebError.from { () throws(Failure) in
      try top.components(of: given, action.rawValue)
    }
    let names = checked.count == 1 ? (checked[0].last ?? []).shown : "\(checked.count) entries"
    let layer = top.path.split(separator: "/").last.map(String.init) ?? top.path
    let steps = try UIEntryEdit(top: top, action: action).run(checked)
    return UIEdit(
      label: action.label(names, layer), content: .entries(steps, layer: top.upper.layer.path))
  }

  private func run(_ paths: [[[UInt8]]]) throws(WebError) -> [UIStep] {
    var steps: [UIStep] = []
    for path in paths {
      do throws(WebError) {
        guard let name = path.last else { throw WebError(400, "the root cannot be changed as a whole") }
        switch action {
        case .override: steps += try override(path)
        case .revert: steps += try revert(path, name)
        case .hide: steps += try hide(path, name)
        }
      } catch {
        UIStepReversal(top).rollBack(steps)
        throw error
      }
    }
    if steps.isEmpty { throw WebError(409, "\(shown(paths.first ?? [])): \(top.path) has it already") }
    return steps
  }

  // MARK: - The three actions

  private func override(_ path: [[UInt8]]) throws(WebError) -> [UIStep] {
    let tracker = UINewEntries(top)
    let before = try naming(path) { () throws(Errno) in try tracker.present(at: path) }
    var copy = try treeCopy()
    do throws(TreeCopy.Fault) {
      try copy.copy(path)
      if let fault = copy.faults.first { throw fault }
    } catch {
      if let made = try? tracker.steps(at: path, since: before) { UIStepReversal(top).rollBack(made) }
      throw WebError(409, "\(shown(error.path)): \(OverrideCommand.reason(error.error))")
    }
    return try naming(path) { () throws(Errno) in try tracker.steps(at: path, since: before) }
  }

  private func revert(_ path: [[UInt8]], _ name: [UInt8]) throws(WebError) -> [UIStep] {
    let folder = Array(path.dropLast())
    let steps = try naming(path) { () throws(Errno) -> [UIStep] in
      var steps: [UIStep] = []
      for (folder, parent) in try top.upper.directories(at: folder, outside: top.device) {
        for name in try parent.allSpellings(of: name) {
          let taken = try withCName(name) { name throws(Errno) in try top.upper.take(name, from: parent) }
          if taken.isNothing { continue }
          steps.append(try step(folder, name, taken))
        }
      }
      return steps
    }
    if steps.isEmpty { throw WebError(409, "\(shown(path)): nothing to revert in \(top.path)") }
    return steps
  }

  private func hide(_ path: [[UInt8]], _ name: [UInt8]) throws(WebError) -> [UIStep] {
    if !top.mountPoint.shows(path) { throw WebError(409, "\(shown(path)): the mount shows no such entry") }
    let (folder, made) = try makeFolder(Array(path.dropLast()))
    do throws(Errno) {
      let taken = try withCName(name) { name throws(Errno) in try top.upper.hide(name, in: folder) }
      return made + [try step(Array(path.dropLast()), name, taken)]
    } catch {
      UIStepReversal(top).rollBack(made)
      if error == .fileExists { throw WebError(409, "\(shown(path)) is hidden already") }
      throw WebError(409, "\(shown(path)): \(error)")
    }
  }

  // MARK: - Parts

  /// Makes sure that the layer has a directory that the mount shows.
  private func makeFolder(_ path: [[UInt8]]) throws(WebError) -> (LayerDirectory, [UIStep]) {
    try UINewEntries(top).makeFolder(path)
  }

  private func step(_ parent: [[UInt8]], _ name: [UInt8], _ taken: TakenEntry) throws(Errno) -> UIStep {
    UIStep(
      parent: parent, name: name, taken: taken,
      left: try UIStep.Trace(at: parent + [name], in: top.upper))
  }

  private func treeCopy() throws(WebError) -> TreeCopy {
    let view = try WebError.from { () throws(Failure) in try top.view() }
    return TreeCopy(of: view, to: top.upper, excluding: top.reserved) { _, _ in }
  }

  private func naming<Result>(
    _ path: [[UInt8]], _ body: () throws(Errno) -> Result
  ) throws(WebError) -> Result {
    do throws(Errno) { return try body() } catch { throw WebError(409, "\(shown(path)): \(error)") }
  }
}
