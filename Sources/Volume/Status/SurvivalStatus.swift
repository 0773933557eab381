import Posix
import Routing

/// What `bundlefs status` tells about the processes that answered requests so far.
public struct SurvivalStatus: Sendable {
  /// How many have died.
  public var deaths: Int
  /// How many of these deaths lie no longer back than `recentSeconds`; eight stands for more, too.
  public var recentDeaths: Int
  /// How the last one died; nil if none has.
  public var cause: String?
  /// How many upgrades there were.
  public var upgrades: Int
  /// How many programs did not take over, so that the former one went on.
  public var failedUpgrades: Int
  /// How many of the dead were killed since they hung.
  public var hangs: Int

  /// Ten minutes.
  public static let recentSeconds = 600

  /// - Parameter status: how the last one died, as wait(2) has it.
  public init(
    deaths: Int, recentDeaths: Int, lastStatus status: CInt, upgrades: Int, failedUpgrades: Int, hangs: Int
  ) {
    self.deaths = deaths
    self.recentDeaths = recentDeaths
    self.upgrades = upgrades
    self.failedUpgrades = failedUpgrades
    self.hangs = hangs
    let signal = status & 0x7F
    if deaths > 0 { cause = signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "signal \(signal)" }
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("restarts", deaths)
      json.member("recentRestarts", recentDeaths)
      json.member("cause", cause)
      json.member("hangs", hangs)
      json.member("upgrades", upgrades)
      json.member("failedUpgrades", failedUpgrades)
    }
  }

  var text: String {
    "restarts: \(deaths)\(cause.map { " (the last one after \($0))" } ?? "")"
      + (hangs > 0 ? ", by the watchdog: \(hangs)" : "") + "; upgrades: \(upgrades)"
      + (failedUpgrades > 0 ? " (failed: \(failedUpgrades))" : "")
  }
}

/// The change to the program that is installed now.
public struct Upgrade: Sendable {
  /// Whether that program can go on: a sentence that says why not, or nil. It may take seconds.
  public let refusal: @Sendable () -> String?
  /// Begins; the process ends soon.
  public let begin: @Sendable () -> Void

  public init(refusal: @escaping @Sendable () -> String?, begin: @escaping @Sendable () -> Void) {
    self.refusal = refusal
    self.begin = begin
  }
}
