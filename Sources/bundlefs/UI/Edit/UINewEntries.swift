import Layers
import Posix
import WebServer

/// Finds what an edit adds to the top layer, so that it can be taken away again.
struct UINewEntries {
  private let top: TopLayer

  init(_ top: TopLayer) { self.top = top }

  /// What the layer has before an edit at a path.
  enum Present {
    /// Nothing at the first components of the path, so many of them.
    case nothing(components: Int)
    /// A directory with entries of these paths, or a file with none.
    case entries(Set<[UInt8]>)
  }

  func present(at path: [[UInt8]]) throws(Errno) -> Present {
    for count in 1...max(1, path.count) {
      if case .nothing = try UIStep.Trace(at: Array(path.prefix(count)), in: top.upper) {
        return .nothing(components: count)
      }
    }
    guard let directory = try top.folder(at: path) else { return .entries([]) }
    return .entries(try directory.allPaths())
  }

  /// The steps that take away what is new at a path.
  func steps(at path: [[UInt8]], since before: Present) throws(Errno) -> [UIStep] {
    switch before {
    case .nothing(let count):
      let made = Array(path.prefix(count))
      return try [step(made)].compactMap { $0 }
    case .entries(let former):
      guard let directory = try top.folder(at: path) else { return [] }
      let new = try directory.allPaths().subtracting(former)
      // With a directory goes what is in it.
      let roots = new.filter { entry in
        guard let slash = entry.lastIndex(of: UInt8(ascii: "/")) else { return true }
        return !new.contains(Array(entry[..<slash]))
      }
      var steps: [UIStep] = []
      for root in roots.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
        if let step = try step(path + root.split(separator: UInt8(ascii: "/")).map { Array($0) }) {
          steps.append(step)
        }
      }
      return steps
    }
  }

  /// - Returns: nil if there is nothing.
  private func step(_ path: [[UInt8]]) throws(Errno) -> UIStep? {
    let left = try UIStep.Trace(at: path, in: top.upper)
    guard left != .nothing, let name = path.last else { return nil }
    let parent = Array(path.dropLast())
    guard let folder = try top.folder(at: parent) else { return nil }
    return UIStep(parent: parent, name: name, taken: try TakenEntry(nothingIn: folder), left: left)
  }

  /// Makes sure that the layer has a directory that the mount shows.
  /// - Returns: the directory, and the steps that take away what was made.
  func makeFolder(_ path: [[UInt8]]) throws(WebError) -> (LayerDirectory, [UIStep]) {
    if path.isEmpty { return (top.upper.layer.root, []) }
    let view = try WebError.from { () throws(Failure) in try top.view() }
    var copy = TreeCopy(of: view, to: top.upper, excluding: top.reserved) { _, _ in }
    do throws(Errno) {
      let before = try present(at: path)
      let folder: LayerDirectory
      do throws(TreeCopy.Fault) { folder = try copy.copyDirectories(path) } catch {
        if let made = try? steps(at: path, since: before) { UIStepReversal(top).rollBack(made) }
        throw error.error
      }
      guard case .nothing = before else { return (folder, []) }
      return (folder, try steps(at: path, since: before))
    } catch {
      throw WebError(409, "\(shown(path)): \(error)")
    }
  }
}
