import Layers
import Posix

/// The cookies (`d_off`) of the names in listings. They have 31 bits, so that programs of 32 bits without large-file
/// support can list directories.
///
/// A listing is in the order of the names' hashes, and of the names where hashes are equal. That order depends on the
/// names alone. A name's cookie is its hash: a listing continues with greater hashes after it. Only a name that another
/// one with the same hash follows has a cookie that is assigned to it, and recorded for a successor.
final class ListingCookies: Sendable {
  private struct State {
    /// The names by their cookies, and the other way round.
    var names: [UInt64: [UInt8]] = [:]
    var cookies: [[UInt8]: UInt64] = [:]
    /// The cookie that is assigned next.
    var next = firstAssigned
    var log: SharedLog?

    /// Adds a name, and removes the oldest beyond a limit.
    mutating func add(_ name: [UInt8], _ cookie: UInt64, limit: Int) {
      if let former = names.updateValue(name, forKey: cookie) { cookies[former] = nil }
      cookies[name] = cookie
      next = cookie + 1 < end ? cookie + 1 : firstAssigned
      if names.count <= limit { return }
      let age = UInt64(limit) + 1
      let oldest = next >= firstAssigned + age ? next - age : next + (end - firstAssigned) - age
      if let name = names.removeValue(forKey: oldest) { cookies[name] = nil }
    }

    mutating func record(_ cookie: UInt64, _ name: [UInt8], _ seed: [UInt8]) {
      guard log != nil else { return }
      log?.append(UInt32(cookie), name.span)
      log?.commit()
      guard log?.isLong == true else { return }
      let kept = names.sorted { distance(to: $0.key) < distance(to: $1.key) }
      log?.begin { append in
        append(seedKind, seed)
        for (cookie, name) in kept { append(UInt32(cookie), name) }
      }
    }

    /// The distance from the next cookie, which the one assigned last has the greatest of.
    private func distance(to cookie: UInt64) -> UInt64 {
      cookie >= next ? cookie - next : cookie + (end - firstAssigned) - next
    }
  }

  /// The cookies of `.` and `..`, and the first that a name can have.
  static let dot: UInt64 = 1
  static let dotDot: UInt64 = 2
  private static let first: UInt64 = 3
  /// Smaller ones are hashes.
  static let firstAssigned: UInt64 = 1 << 31 - 1 << 20
  private static let end: UInt64 = 1 << 31
  /// The kind of the log's entry that has the seed; those of names are their cookies.
  private static let seedKind = UInt32.max

  /// Random, so that no user can choose names that have one hash.
  private let seed: UInt64
  let hashCount: UInt64
  private let limit: Int
  /// The log has no reference to it.
  private let memory: SharedMemory?
  private let state: Locked<State>

  /// - Parameters:
  ///   - memory: where the seed and the assigned cookies are recorded, and from where those of a predecessor are restored.
  ///   - hashCount: how many hashes there are.
  ///   - limit: how many assigned cookies are kept: enough for a directory with 12 million names. A listing that stopped at an
  ///     older one cannot be continued.
  init(memory: SharedMemory? = nil, hashCount: UInt64 = firstAssigned - first, limit: Int = 1 << 15) {
    self.hashCount = hashCount
    self.limit = limit
    self.memory = memory
    var (state, seed) = (State(), UInt64?.none)
    if let memory {
      var log = SharedLog(memory, in: SharedRegions.cookies, leastLimit: 1 << 20)
      log.forEach { kind, bytes in
        if kind == Self.seedKind {
          seed = bytes.count == 8 ? bytes.loadUnaligned(as: UInt64.self) : nil
        } else {
          state.add(Array(bytes), UInt64(kind), limit: limit)
        }
      }
      if seed == nil {
        seed = .random(in: .min ... .max)
        log.append(Self.seedKind, Self.bytes(of: seed ?? 0).span)
        log.commit()
      }
      state.log = log
    }
    self.seed = seed ?? .random(in: .min ... .max)
    self.state = Locked(state)
  }

  private static func bytes(of seed: UInt64) -> [UInt8] { withUnsafeBytes(of: seed) { Array($0) } }

  /// A name's hash, which is also its cookie, unless a name with the same hash follows.
  func hash(of name: CName) -> UInt64 {
    var (hash, next) = (seed, name)
    while next.pointee != 0 {
      hash = (hash ^ UInt64(UInt8(bitPattern: next.pointee))) &* 0x9FB2_1C65_1E98_DF25
      hash ^= hash >> 29
      next += 1
    }
    hash = (hash ^ hash >> 32) &* 0xD6E8_FEB8_6659_FD93
    return Self.first + ((hash >> 32) * hashCount) >> 32
  }

  /// The cookie of a name that another one with the same hash follows.
  func assignedCookie(of name: [UInt8]) -> UInt64 {
    state.withLock { state in
      if let cookie = state.cookies[name] { return cookie }
      let cookie = state.next
      state.add(name, cookie, limit: limit)
      state.record(cookie, name, Self.bytes(of: seed))
      return cookie
    }
  }

  /// The name that an assigned cookie belongs to.
  /// - Throws: EINVAL for an unknown one.
  func name(of cookie: UInt64) throws(Errno) -> [UInt8] {
    guard let name = state.withLock({ $0.names[cookie] }) else { throw .invalidArgument }
    return name
  }
}
