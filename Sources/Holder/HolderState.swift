import CLinux
import Glibc
import Posix

/// What the holder and its workers have in common, at the beginning of their shared memory.
///
/// Invariants: `lock` belongs to the worker that serves, from its start to its end; only the holder writes `worker`,
/// `pendingSignal`, `deaths`, `deathTimes`, `lastStatus` and, between two workers, `rawPhase`; only the holder and its guard write
/// `failedUpgrades`, one after the other; the holder writes `hangs`, and `heartbeat` between two workers; only the worker
/// writes the rest, but for `rawTakeover`.
public struct HolderState: BitwiseCopyable {
  /// What a worker has done so far.
  public enum Phase: UInt32, Sendable, BitwiseCopyable {
    /// None is there, or it has only just been forked.
    case none
    /// It has the lock.
    case started
    /// It answers requests.
    case ready
    /// It has handed over to the program that is installed now.
    case replaced
    /// It has handed over to a successor that continues with other layers.
    case switched
    /// It has unmounted, or has never mounted.
    case ended
  }

  /// How far another program is that replaces the holder's.
  public enum Takeover: UInt32, Sendable, BitwiseCopyable {
    /// No replacement is under way.
    case none
    /// The holder is executing it, or its first worker is starting; the guard waits.
    case pending
    /// Its first worker reads requests. Only that worker writes this.
    case done
    /// It could not be executed. Only the holder writes this.
    case abandoned
  }

  /// The descriptors that a successor takes over.
  public typealias Kept = (CInt, CInt, CInt, CInt, CInt, CInt, CInt, CInt)

  /// Seconds of the monotonic clock.
  public typealias Times = (Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64)

  /// The version of the state's format: a worker continues only with its own.
  public static let currentVersion: UInt64 = 6
  /// The bytes that are reserved for it.
  public static let reserved = 4096

  public var version = Self.currentVersion
  /// Room for a lock of the C library.
  var lock: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
  /// The process ID of the present worker; 0 while there is none.
  public var worker: pid_t = 0
  /// A signal to pass on to the next worker.
  var pendingSignal: CInt = 0
  var rawPhase: UInt32 = 0
  /// How many workers have died.
  public var deaths: UInt32 = 0
  /// How many of these deaths a successor has reported.
  public var reportedDeaths: UInt32 = 0
  /// How the last one died, as wait(2) has it.
  public var lastStatus: CInt = 0
  /// How often the program was replaced by a newer one.
  public var upgrades: UInt32 = 0
  /// The descriptor of `/dev/fuse`, that of the directory beneath the mount point, and further ones that must stay
  /// open; -1 for none.
  public var device: CInt = -1
  public var beneath: CInt = -1
  public var others: Kept = (-1, -1, -1, -1, -1, -1, -1, -1)
  /// Whether files that successors use stay open across execve(2).
  public var keepsFiles: UInt32 = 0
  /// Whether a worker has been ready.
  public var wasReady: UInt32 = 0
  /// Whether the layers were changed since a worker was ready.
  public var haveLayersChanged: UInt32 = 0
  /// The size of the INIT request, which follows the state; 0 before the mount.
  public var initSize: UInt32 = 0
  /// The descriptor, plus 1, of the inotify instance of a worker that has handed over with nothing left undone; 0 for none.
  public var unreadEvents: CInt = 0
  /// The descriptor, plus 1, of the program that is to replace the holder's, as it was checked; 0 for none.
  public var candidate: CInt = 0
  var rawTakeover: UInt32 = 0
  /// How many programs did not take over, so that the former one went on.
  public var failedUpgrades: UInt32 = 0
  /// How many of these a successor has reported.
  public var reportedFailedUpgrades: UInt32 = 0
  /// How many workers the holder has killed, since their heartbeat stood still.
  public var hangs: UInt32 = 0
  /// Counts on while the present worker's threads run; 0 until it begins.
  var heartbeat: UInt64 = 0
  /// The descriptor, plus 1, of the user namespace in which a private mount is; 0 for none, also in an older state.
  public var users: CInt = 0
  /// The descriptor, plus 1, of the folder with the record of `mtime=visible`; 0 for none.
  public var times: CInt = 0
  /// When the last eight workers died, in no order; 0 for none. A program from before it has left zeros here.
  var deathTimes: Times = (0, 0, 0, 0, 0, 0, 0, 0)

  public init() {}

  /// Counts a death.
  /// - Parameters:
  ///   - status: as wait(2) has it.
  ///   - time: seconds of the monotonic clock.
  mutating func recordDeath(_ status: CInt, at time: Int64) {
    withUnsafeMutableBytes(of: &deathTimes) { times in
      let times = times.bindMemory(to: Int64.self)
      times[Int(deaths) % times.count] = time
    }
    deaths &+= 1
    lastStatus = status
  }

  /// How many workers have died since a time in seconds of the monotonic clock, as far as their times are kept: at most
  /// eight.
  public func deaths(since time: Int64) -> Int {
    withUnsafeBytes(of: deathTimes) { $0.bindMemory(to: Int64.self).count { $0 != 0 && $0 >= time } }
  }

  public var phase: Phase {
    get { Phase(rawValue: rawPhase) ?? .none }
    set { rawPhase = newValue.rawValue }
  }

  public internal(set) var takeover: Takeover {
    get { Takeover(rawValue: rawTakeover) ?? .none }
    set { rawTakeover = newValue.rawValue }
  }

  /// To be called by each worker before it reads the first request: counts the upgrade that it completes, if any, so that
  /// every reply of the new program has the count.
  public mutating func completeTakeover() {
    if takeover != .pending { return }
    upgrades += 1
    takeover = .done
  }
}
