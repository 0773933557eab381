/// The option `log=auto`, `journal`, `syslog`, `stderr` or `FILE`: where the messages of the daemon go.
enum LogOption: Equatable {
  /// To the journal, or else to syslog, or else nowhere.
  case auto
  case journal
  case syslog
  /// To the standard error of the command that mounts.
  case stderr
  /// - Parameter path: absolute.
  case file([UInt8])

  var shown: String {
    switch self {
    case .auto: "auto"
    case .journal: "journal"
    case .syslog: "syslog"
    case .stderr: "stderr"
    case .file(let path): path.shown
    }
  }
}

extension MountOption {
  func log() throws(Failure) -> LogOption {
    switch value.map(\.shown) {
    case "auto": return .auto
    case "journal": return .journal
    case "syslog": return .syslog
    case "stderr": return .stderr
    default: break
    }
    if let value, value.first == UInt8(ascii: "/"), !value.contains(0) { return .file(Self.unescape(value)) }
    throw .usage(
      "invalid option '\(text)': expected \(name)=auto, journal, syslog, stderr or FILE, an absolute path")
  }
}
