/// The word that the user may have meant by a misspelt one.
enum Suggestion {
  /// The nearest of the candidates, if it is near enough: at most two edits, and one in a word of less than five
  /// bytes.
  static func nearest(to word: String, among candidates: some Sequence<String>) -> String? {
    let limit = min(2, (word.utf8.count + 1) / 3)
    let distances = candidates.map { ($0, editDistance(Array(word.utf8), Array($0.utf8))) }
    let near = distances.filter { (0...limit).contains($0.1) && $0.0 != word }
    return near.min { ($0.1, $0.0) < ($1.1, $1.0) }?.0
  }

  /// `; did you mean 'X'?`, or nothing.
  static func question(_ word: String?) -> String { word.map { "; did you mean '\($0)'?" } ?? "" }

  /// How many bytes must be inserted, removed, replaced, or exchanged with their neighbours (optimal string alignment).
  static func editDistance(_ first: [UInt8], _ second: [UInt8]) -> Int {
    // No candidate is much longer than that.
    if first.count > 64 || second.count > 64 { return max(first.count, second.count) }
    var rows = [Array(0...second.count)]
    for row in 0..<first.count {
      var next = [row + 1]
      for column in 0..<second.count {
        let isSame = first[row] == second[column]
        var least = min(rows[row][column] + (isSame ? 0 : 1), rows[row][column + 1] + 1, next[column] + 1)
        if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
          least = min(least, rows[row - 1][column - 1] + 1)
        }
        next.append(least)
      }
      rows.append(next)
    }
    return rows[first.count][second.count]
  }
}
