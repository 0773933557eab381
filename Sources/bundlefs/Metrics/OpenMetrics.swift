/// A text in the OpenMetrics format, version 1.0, which Prometheus and the textfile collector of its node exporter read.
struct OpenMetrics {
  enum Kind: String {
    case counter, gauge, info

    /// What the name of a sample has at its end.
    fileprivate var suffix: String {
      switch self {
      case .counter: "_total"
      case .gauge: ""
      case .info: "_info"
      }
    }
  }

  struct Sample: Equatable {
    var labels: [Label] = []
    let value: Int
  }

  struct Label: Equatable {
    let name: String
    let value: String
  }

  /// How many requests or the like took how long.
  struct Histogram {
    var labels: [Label] = []
    /// The buckets' upper bounds in microseconds, ascending. A last bucket has none.
    let bounds: [Int]
    /// Of each bucket alone.
    let counts: [Int]
    /// The sum of all times.
    let microseconds: Int
  }

  private var lines: [String] = []

  /// Adds a family of samples, which have to be together; none without samples.
  /// - Parameters:
  ///   - name: without the suffix of its kind, with the unit at its end.
  ///   - help: one line.
  mutating func add(
    _ name: String, _ kind: Kind, unit: String? = nil, help: String, _ samples: [Sample]
  ) {
    if samples.isEmpty { return }
    lines.append("# TYPE \(name) \(kind.rawValue)")
    if let unit { lines.append("# UNIT \(name) \(unit)") }
    lines.append("# HELP \(name) \(Self.escaped(help))")
    for sample in samples {
      lines.append(name + kind.suffix + Self.braced(sample.labels) + " \(sample.value)")
    }
  }

  /// Adds a family of histograms, in seconds; none without histograms.
  mutating func add(_ name: String, help: String, _ histograms: [Histogram]) {
    if histograms.isEmpty { return }
    lines += ["# TYPE \(name) histogram", "# UNIT \(name) seconds", "# HELP \(name) \(Self.escaped(help))"]
    for histogram in histograms {
      var count = 0
      for (index, part) in histogram.counts.enumerated() {
        count += part
        let bound = index < histogram.bounds.count ? Self.seconds(histogram.bounds[index]) : "+Inf"
        let labels = histogram.labels + [Label(name: "le", value: bound)]
        lines.append("\(name)_bucket\(Self.braced(labels)) \(count)")
      }
      let labels = Self.braced(histogram.labels)
      lines.append("\(name)_count\(labels) \(count)")
      lines.append("\(name)_sum\(labels) \(Self.seconds(histogram.microseconds))")
    }
  }

  /// A number of microseconds in seconds, without a rounding error.
  private static func seconds(_ microseconds: Int) -> String {
    let (whole, part) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    var digits = String(1_000_000 + part).dropFirst()
    while digits.count > 1, digits.last == "0" { digits.removeLast() }
    return "\(whole).\(digits)"
  }

  private static func braced(_ labels: [Label]) -> String {
    if labels.isEmpty { return "" }
    return "{" + labels.map { "\($0.name)=\"\(escaped($0.value))\"" }.joined(separator: ",") + "}"
  }

  var text: String { (lines + ["# EOF"]).map { $0 + "\n" }.joined() }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
