import BundleResources
import Foundation

/// The times of look-ups by their kinds.
struct BenchTable {
  var isWarm = false
  private var times: [String: [Double]] = [:]
  private var kinds: [String] = []

  private static let keys = (0..<BenchLayers.count).map { "key \($0)" }
  private static let names = (0..<BenchLayers.count).map { "file\($0)" }
  private static let foundation = "Foundation's Bundle, one folder"
  private static let passes = 20

  /// Measures all kinds once.
  mutating func measure(
    _ foundation: Bundle, _ one: LayeredBundle, _ three: LayeredBundle, _ plain: LayeredBundle
  ) throws {
    try strings(Self.foundation) { foundation.localizedString(forKey: $0, value: nil, table: nil) }
    try strings("LayeredBundle, one folder") { one.localizedString(forKey: $0) }
    try strings("LayeredBundle, three layers") { three.localizedString(forKey: $0) }
    try strings("the same without the cache", passes: 1) { plain.localizedString(forKey: $0) }
    try urls(Self.foundation) { foundation.url(forResource: $0, withExtension: "txt") }
    try urls("LayeredBundle, one folder") { one.url(forResource: $0, withExtension: "txt") }
    try urls("LayeredBundle, three layers") { three.url(forResource: $0, withExtension: "txt") }
    try urls("the same without the cache", passes: 1) { plain.url(forResource: $0, withExtension: "txt") }
  }

  private mutating func strings(_ kind: String, passes: Int = passes, _ find: (String) -> String) throws {
    try measure("localizedString", kind, passes) {
      for key in Self.keys where find(key) == key { throw Failure("\(kind) has no string for \(key)") }
    }
  }

  private mutating func urls(_ kind: String, passes: Int = passes, _ find: (String) -> URL?) throws {
    try measure("url(forResource:)", kind, passes) {
      for name in Self.names where find(name) == nil { throw Failure("\(kind) has no \(name)") }
    }
  }

  private mutating func measure(
    _ method: String, _ kind: String, _ passes: Int, _ body: () throws -> Void
  ) rethrows {
    let start = ContinuousClock.now
    for _ in 0..<passes { try body() }
    let elapsed = (ContinuousClock.now - start) / Duration.nanoseconds(passes * BenchLayers.count)
    guard isWarm else { return }
    let name = method + "\t" + kind
    if times[name] == nil { kinds.append(name) }
    times[name, default: []].append(elapsed)
  }

  /// Prints the medians, and their ratio to Foundation's.
  func print() {
    var method = ""
    var reference = 0.0
    for kind in kinds {
      let words = kind.split(separator: "\t").map(String.init)
      let sorted = (times[kind] ?? []).sorted()
      guard words.count == 2, !sorted.isEmpty else { continue }
      let median = sorted[sorted.count / 2]
      if words[0] != method {
        (method, reference) = (words[0], median)
        Swift.print("\n\(method), warm" + String(repeating: " ", count: 32 - method.count) + "µs  ratio")
      }
      let name = "  " + words[1] + String(repeating: " ", count: max(1, 32 - words[1].count))
      Swift.print(name + String(format: "%8.3f %6.2f", median / 1000, median / reference))
    }
  }
}
