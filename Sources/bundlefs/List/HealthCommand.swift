import Posix
import Routing

/// `bundlefs health MOUNTPOINT...|--all [--json]`.
struct HealthCommand {
  private let mounts: MountSelection
  private let isJSON: Bool

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let flags = Set(arguments.filter { $0.starts(with: "-".utf8) }.map(\.shown))
    if let option = flags.subtracting(["--all", "-a", "--json"]).min() {
      throw .unknownOption(option, of: "health")
    }
    mounts = try MountSelection(
      arguments.filter { !$0.starts(with: "-".utf8) }, isForAll: !flags.isDisjoint(with: ["--all", "-a"]),
      command: "health")
    isJSON = flags.contains("--json")
  }

  /// - Returns: the exit status: that of the worst mount.
  func run() -> CInt {
    let reports = mounts.ask().map(HealthReport.init)
    if isJSON {
      var json = JSONWriter()
      json.array(reports, onLines: true) { $1.write(to: &$0) }
      Terminal.print(json.text)
    } else {
      for report in reports { Terminal.print(report.text) }
    }
    return reports.map(\.state.rawValue).max() ?? 0
  }
}
