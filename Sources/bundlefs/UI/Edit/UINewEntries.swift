import Layers
import Posix
import WebServer

/// Copies entries of the mount to the top layer, so that they can be taken away again.
struct UINewEntries {
  private let top: TopLayer

  init(_ top: TopLayer) { self.top = top }

  /// Copies what the mount shows at a path.
  /// - Parameter steps: get those that take away what was made, also if it fails.
  func copy(_ path: [[UInt8]], _ steps: inout [UIStep]) throws(WebError) {
    var copy = try treeCopy()
    var fault: TreeCopy.Fault?
    do throws(TreeCopy.Fault) { try copy.copy(path) } catch { fault = error }
    try add(copy.made, to: &steps)
    guard let fault = fault ?? copy.faults.first else { return }
    throw WebError(409, "\(shown(fault.path)): \(OverrideCommand.reason(fault.error))")
  }

  /// Makes sure that the layer has a directory that the mount shows.
  /// - Parameter steps: get those that take away what was made, also if it fails.
  func makeFolder(_ path: [[UInt8]], _ steps: inout [UIStep]) throws(WebError) -> LayerDirectory {
    if path.isEmpty { return top.upper.layer.root }
    var copy = try treeCopy()
    var (folder, failure): (LayerDirectory?, Errno) = (nil, .ioError)
    do throws(TreeCopy.Fault) { folder = try copy.copyDirectories(path) } catch { failure = error.error }
    try add(copy.made, to: &steps)
    guard let folder else { throw WebError(409, "\(shown(path)): \(failure)") }
    return folder
  }

  private func treeCopy() throws(WebError) -> TreeCopy {
    let view = try WebError.from { () throws(Failure) in try top.view() }
    return TreeCopy(
      of: view, to: top.upper, excluding: top.reserved, recordsMade: true
    ) { _, _ in }
  }

  /// Adds a step for each entry that is in no other one. Nothing else that is there by now is the edit's.
  private func add(_ made: [TreeCopy.Made], to steps: inout [UIStep]) throws(WebError) {
    var index = 0
    while index < made.count {
      let root = made[index]
      var below: [[UInt8]: EntryTrace.Mark] = [:]
      index += 1
      while index < made.count, made[index].path.starts(with: root.path) {
        let path = made[index].path.dropFirst(root.path.count)
        below[Array(path).joinedPath] = EntryTrace.Mark(made[index].status)
        index += 1
      }
      do throws(Errno) { steps.append(try step(root, below)) } catch {
        throw WebError(409, "\(shown(root.path)): \(error)")
      }
    }
  }

  private func step(
    _ root: TreeCopy.Made, _ below: [[UInt8]: EntryTrace.Mark]
  ) throws(Errno) -> UIStep {
    let path = try top.upper.layer.root.spelled(root.path)
    guard let name = path.last, let folder = try top.folder(at: Array(path.dropLast())) else {
      throw .noSuchFileOrDirectory
    }
    return UIStep(
      parent: Array(path.dropLast()), name: name, taken: try TakenEntry(nothingIn: folder),
      former: .nothing, left: EntryTrace(root.status, below: below))
  }
}
