import Posix

/// How many connections each user of this computer may have. All users can reach the port, and none must be able to take
/// those that the browser needs.
final class ConnectionShares: Sendable {
  /// The user at the other end of a connection; nil if the kernel does not say.
  typealias User = UInt32?

  /// The connections of all users together.
  static let all = 64
  /// Those of each user that has not shown the token, and of all such users.
  static let (perStranger, ofStrangers) = (8, 32)

  private struct State {
    var trusted: Set<User>
    var counts: [User: Int] = [:]

    /// Those of users that have not shown the token.
    var strangers: Int { counts.reduce(0) { trusted.contains($1.key) ? $0 : $0 + $1.value } }
  }

  private let state: Locked<State>

  /// - Parameter user: the one that may have all connections.
  init(user: UInt32) { state = Locked(State(trusted: [user])) }

  /// Whether a user may have one more.
  func hasRoom(for user: User) -> Bool {
    state.withLock { state in
      if state.trusted.contains(user) { return true }
      return state.counts[user, default: 0] < Self.perStranger && state.strangers < Self.ofStrangers
    }
  }

  /// A user that has shown the token may have all, such as the one whose browser shows what root serves.
  func trust(_ user: User) { state.withLock { _ = $0.trusted.insert(user) } }

  func begin(_ user: User) { state.withLock { $0.counts[user, default: 0] += 1 } }

  func end(_ user: User) {
    state.withLock { state in
      let rest = state.counts[user, default: 1] - 1
      state.counts[user] = rest > 0 ? rest : nil
    }
  }
}
