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

  /// - Parameters:
  ///   - paths: relative to the mount's root.
  ///   - remains: get what could not be changed back if it fails.
  static func run(
    _ action: Action, _ paths: [[[UInt8]]], of mountPoint: MountPoint, _ remains: UIRemains
  ) throws(WebError) -> UIEdit {
    let top = try WebError.from { () throws(Failure) in try TopLayer(of: mountPoint) }
    defer { top.finish() }
    let given = paths.map { mountPoint.path + [UInt8(ascii: "/")] + $0.joinedPath }
    let checked = try WebError.from { () throws(Failure) in
      try top.components(of: given, action.rawValue)
    }
    let names = checked.count == 1 ? (checked[0].last ?? []).shown : "\(checked.count) entries"
    let layer = top.path.split(separator: "/").last.map(String.init) ?? top.path
    let steps = try UIEntryEdit(top: top, action: action).run(checked, remains)
    return UIEdit(
      label: action.label(names, layer), content: .entries(steps, layer: top.upper.layer.path))
  }

  private func run(_ paths: [[[UInt8]]], _ remains: UIRemains) throws(WebError) -> [UIStep] {
    var steps: [UIStep] = []
    do throws(WebError) {
      for path in paths {
        guard let name = path.last else { throw WebError(400, "the root cannot be changed as a whole") }
        switch action {
        case .override: try UINewEntries(top).copy(path, &steps)
        case .revert: try revert(path, name, &steps)
        case .hide: try hide(path, name, &steps)
        }
      }
    } catch {
      UIStepReversal(top, remains).rollBack(steps)
      throw error
    }
    if steps.isEmpty { throw WebError(409, "\(shown(paths.first ?? [])): \(top.path) has it already") }
    return steps
  }

  // MARK: - The actions

  /// - Parameter steps: get those that were made, also if it fails.
  private func revert(_ path: [[UInt8]], _ name: [UInt8], _ steps: inout [UIStep]) throws(WebError) {
    let count = steps.count
    do throws(Errno) {
      for (folder, parent) in try top.upper.directories(at: path.dropLast(), outside: top.device) {
        for name in try parent.allSpellings(of: name) {
          let (former, taken) = try withCName(name) { name throws(Errno) in
            (try top.upper.trace(of: name, in: parent), try top.upper.take(name, from: parent))
          }
          if taken.isNothing { continue }
          steps.append(UIStep(parent: folder, name: name, taken: taken, former: former, left: .nothing))
        }
      }
    } catch {
      throw WebError(409, "\(shown(path)): \(error)")
    }
    if steps.count == count { throw WebError(409, "\(shown(path)): nothing to revert in \(top.path)") }
  }

  /// - Parameter steps: as for `revert`.
  private func hide(_ path: [[UInt8]], _ name: [UInt8], _ steps: inout [UIStep]) throws(WebError) {
    if !top.mountPoint.shows(path) { throw WebError(409, "\(shown(path)): the mount shows no such entry") }
    let parent = Array(path.dropLast())
    let folder = try UINewEntries(top).makeFolder(parent, &steps)
    do throws(Errno) {
      let place = try top.place(of: name, in: folder, at: parent)
      let (former, taken) = try withCName(place.name) { name throws(Errno) in
        (try top.upper.trace(of: name, in: place.folder), try top.upper.hide(name, in: place.folder))
      }
      steps.append(
        UIStep(parent: place.parent, name: place.name, taken: taken, former: former, left: .whiteout))
    } catch {
      if error == .fileExists { throw WebError(409, "\(shown(path)) is hidden already") }
      throw WebError(409, "\(shown(path)): \(error)")
    }
  }
}
