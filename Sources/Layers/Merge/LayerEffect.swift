import CLibrary
import Posix

/// What a directory of one layer does to a directory below it in the merged tree.
public enum LayerEffect: Sendable {
  /// It has nothing of the name.
  case none
  /// It has a directory, which is merged with those of other layers; several where they are one name.
  case parts([LayerDirectory])
  /// It hides what the layers below have, or may hide it.
  case hides
}

extension LayerDirectory {
  /// What this directory does to a directory of a name, in any spelling.
  public func effect(on name: CName) -> LayerEffect { (try? readEffect(on: name)) ?? .hides }

  /// As `effect`.
  /// - Throws: what reading the layer throws.
  func readEffect(on name: CName) throws(Errno) -> LayerEffect {
    let found = try find(name)
    switch found {
    case .file, .whiteout: return .hides
    case .nothing, .directory: if try hasWhiteoutMarker(name, length: strlen(name)) { return .hides }
    }
    guard case .directory = found else { return .none }
    let directories = try directories(named: name)
    for directory in directories where try directory.isOpaque() { return .hides }
    return .parts(directories)
  }
}

extension LayerStack {
  /// The indexes of the layers that came or went since the predecessor, or that have another place among the others; nil
  /// if the layers are the same.
  public var changedIndexes: Set<Int>? {
    guard let former = formerIndexes else { return nil }
    let kept = Self.longestCommonSubsequence(former, Array(layers.indices))
    return Set(former).union(layers.indices).subtracting(kept)
  }

  /// Whether all directories of a layer hide those of the layers below.
  public func isOpaque(_ index: Int) -> Bool {
    let root = self[index].root
    return (try? root.isOpaque()) ?? true
  }

  static func longestCommonSubsequence(_ first: [Int], _ second: [Int]) -> [Int] {
    // lengths[i][j]: of the sequences from i and j on.
    var lengths = [[Int]](
      repeating: [Int](repeating: 0, count: second.count + 1), count: first.count + 1)
    for i in first.indices.reversed() {
      for j in second.indices.reversed() {
        lengths[i][j] =
          first[i] == second[j] ? lengths[i + 1][j + 1] + 1 : max(lengths[i + 1][j], lengths[i][j + 1])
      }
    }
    var (i, j, common) = (0, 0, [Int]())
    while i < first.count, j < second.count {
      if first[i] == second[j] {
        common.append(first[i])
        (i, j) = (i + 1, j + 1)
      } else if lengths[i + 1][j] >= lengths[i][j + 1] {
        i += 1
      } else {
        j += 1
      }
    }
    return common
  }
}
