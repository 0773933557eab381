import Posix
import Routing

/// `bundlefs health MOUNTPOINT...|--all [--json]`.
struct HealthCommand {
  /// nil for all mounts.
  private let paths: [[UInt8]]?
  private let isJSON: Bool

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let flags = Set(arguments.filter { $0.starts(with: "-".utf8) }.map(\.shown))
    if let option = flags.subtracting(["--all", "-a", "--json"]).min() {
      throw .usage("'health' has no option '\(option)'")
    }
    let operands = arguments.filter { !$0.starts(with: "-".utf8) }
    let isForAll = !flags.isDisjoint(with: ["--all", "-a"])
    if isForAll, !operands.isEmpty { throw .usage("'health --all' takes no MOUNTPOINT") }
    if !isForAll, operands.isEmpty || operands.contains([]) {
      throw .usage("'health' needs a MOUNTPOINT or '--all'")
    }
    (paths, isJSON) = (isForAll ? nil : operands, flags.contains("--json"))
  }

  /// - Returns: the exit status: that of the worst mount.
  func run() -> CInt {
    let reports = paths.map(Self.reports) ?? Self.allReports()
    if isJSON {
      var json = JSONWriter()
      json.array(reports, onLines: true) { $1.write(to: &$0) }
      Terminal.print(json.text)
    } else {
      for report in reports { Terminal.print(report.text) }
    }
    return reports.map(\.state.rawValue).max() ?? 0
  }

  private static func reports(_ paths: [[UInt8]]) -> [HealthReport] {
    AskedMount.all(at: paths).map { asked in
      switch asked {
      case .success(let asked): HealthReport(asked)
      case .failure(let missing): HealthReport(dead: missing.path, missing.reason)
      }
    }
  }

  /// Those that the caller may ask; what was unmounted meanwhile is left out, too.
  private static func allReports() -> [HealthReport] {
    let mounts = VisibleMount.all()
    return zip(mounts, MountInspection.all(of: mounts)).compactMap { mount, inspection in
      let excused: [Errno] = [
        .permissionDenied, .notPermitted, .noSuchFileOrDirectory, .inappropriateIOCTLForDevice,
      ]
      if case .unknown(let error) = inspection, excused.contains(error) { return nil }
      return HealthReport(AskedMount(mount: mount, inspection: inspection))
    }
  }
}
