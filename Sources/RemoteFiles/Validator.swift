import CLibrary
import Posix

/// What tells the states of an object on a server apart.
public struct Validator: Hashable, Sendable {
  /// The entity tag with its quotes; empty unless the server has sent a strong one.
  var entityTag: [UInt8] = []
  /// The value of `Last-Modified`; empty without.
  var modified: [UInt8] = []

  /// Whether ranges of two answers can be known to be of one state.
  var isPresent: Bool { !entityTag.isEmpty || !modified.isEmpty }

  /// The header by which a server is to send a range of this state alone: it refuses it (412) or sends the whole object
  /// (200) if there is another. `Last-Modified` counts only with the size, which each answer has.
  var condition: [UInt8] {
    if !entityTag.isEmpty { return Array("If-Match: ".utf8) + entityTag }
    return modified.isEmpty ? [] : Array("If-Range: ".utf8) + modified
  }

  /// Whether an answer's validator says the same as this one. A server can leave out one of two.
  func matches(_ other: Validator) -> Bool {
    if !entityTag.isEmpty { return entityTag == other.entityTag }
    return modified == other.modified && other.entityTag.isEmpty
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The time that `Last-Modified` names, as `Sun, 06 Nov 1994 08:49:37 GMT`; nil if it cannot be read.
  var time: TimeSpec? {
    let words = modified.split(separator: UInt8(ascii: " "))
    guard words.count == 6, words[5].elementsEqual("GMT".utf8),
      let month = Self.months.firstIndex(where: { words[2].elementsEqual($0.utf8) })
    else { return nil }
    let clock = words[4].split(separator: UInt8(ascii: ":"))
    let numbers = ([words[1], words[3]] + clock).compactMap {
      ResponseHead.number($0).flatMap(Int32.init(exactly:))
    }
    guard clock.count == 3, numbers.count == 5, (1...31).contains(numbers[0]),
      (1970...9999).contains(numbers[1]), numbers[2] < 24, numbers[3] < 60, numbers[4] < 61
    else { return nil }
    var fields = tm()
    (fields.tm_mday, fields.tm_mon, fields.tm_year) = (numbers[0], Int32(month), numbers[1] - 1900)
    (fields.tm_hour, fields.tm_min, fields.tm_sec) = (numbers[2], numbers[3], numbers[4])
    return TimeSpec(seconds: Int64(timegm(&fields)), nanoseconds: 0)
  }
}
