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
      let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
      lines.append(name + kind.suffix + (labels.isEmpty ? "" : "{\(labels)}") + " \(sample.value)")
    }
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
