import Bundles
import Layers
import RemoteFiles
import Routing
import Volume

/// One mount option, `NAME` or `NAME=VALUE`, and the parsers for values.
struct MountOption {
  let name: String
  /// The bytes after `=`, with backslashes; nil without `=`.
  let value: [UInt8]?
  /// The whole option without backslashes.
  let text: String

  init(_ option: [UInt8]) {
    text = Self.unescape(option).shown
    if let equals = option.firstIndex(of: UInt8(ascii: "=")) {
      (name, value) = (Array(option[..<equals]).shown, Array(option[(equals + 1)...]))
    } else {
      (name, value) = (option.shown, nil)
    }
  }

  func invalid(expected: String) -> Failure {
    .usage("invalid option '\(text)': expected \(expected)")
  }

  func isOn() throws(Failure) -> Bool {
    guard let value, let isOn = ["on": true, "off": false][value.shown] else {
      throw invalid(expected: "\(name)=on or \(name)=off")
    }
    return isOn
  }

  func isEmptyWhenMissing() throws(Failure) -> Bool {
    guard let value, let isEmpty = ["empty": true, "error": false][value.shown] else {
      throw invalid(expected: "\(name)=empty or \(name)=error")
    }
    return isEmpty
  }

  func whiteoutFormat() throws(Failure) -> WhiteoutFormat {
    guard let format = value.flatMap({ WhiteoutFormat(rawValue: $0.shown) }) else {
      throw invalid(expected: "\(name)=auto, \(name)=devices or \(name)=markers")
    }
    return format
  }

  func directories() throws(Failure) -> [[UInt8]] {
    let paths = value.map(Self.splitLayers) ?? [[]]
    if paths.contains([]) { throw invalid(expected: "\(name)=DIR[:DIR...]") }
    return try paths.map { path throws(Failure) in try LaidPath(given: Self.unescape(path)).name }
  }

  /// The folder that takes the changes.
  func upper() throws(Failure) -> [UInt8] {
    let laid = try LaidPath(given: try text(of: "DIR"))
    if !laid.place.isEmpty { throw .usage(WritableOption.refusal(of: laid)) }
    return laid.path
  }

  /// - Parameter kind: what the value means.
  func text(of kind: String) throws(Failure) -> [UInt8] {
    guard let value, !value.isEmpty else { throw invalid(expected: "\(name)=\(kind)") }
    return Self.unescape(value)
  }

  func profile() throws(Failure) -> Profile {
    try Profile(ProfileName(text(of: "NAME")), in: ProfileFolder())
  }

  func fileName() throws(Failure) -> [UInt8] {
    let dot = UInt8(ascii: ".")
    guard let name = value.map(Self.unescape), !name.isEmpty, name.count <= 255,
      !name.contains(UInt8(ascii: "/")), name != [dot], name != [dot, dot]
    else { throw invalid(expected: "\(name)=NAME, a file name of at most 255 bytes without '/'") }
    return name
  }

  /// Whether the value says that there is no such thing.
  var isNone: Bool { value == Array("none".utf8) }

  func extendedAttributeMode() throws(Failure) -> ExtendedAttributeMode {
    guard let mode = value.flatMap({ ExtendedAttributeMode(rawValue: $0.shown) }) else {
      throw invalid(expected: "\(name)=on, \(name)=off, \(name)=listed or \(name)=layers")
    }
    return mode
  }

  func encoding() throws(Failure) -> NameEncoding {
    guard let value, !value.isEmpty, let encoding = NameEncoding(value.shown) else {
      throw invalid(expected: "\(name)=NAME, an encoding of 'iconv -l', such as cp866, shift_jis or gbk")
    }
    return encoding
  }

  func mode() throws(Failure) -> UInt32 {
    guard let mode = value.flatMap({ UInt32($0.shown, radix: 8) }), mode <= 0o777 else {
      throw invalid(expected: "an octal mode from 000 to 777, such as \(name)=620")
    }
    return mode
  }

  /// A number of bytes; the suffixes K, M and G stand for powers of 1024.
  func byteCount(example: String) throws(Failure) -> Int {
    let units: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let text = value?.shown ?? ""
    let unit = text.last.flatMap { units[Character($0.uppercased())] }
    if let count = Int(unit == nil ? text : String(text.dropLast())), count >= 0 {
      let (bytes, overflows) = count.multipliedReportingOverflow(by: unit ?? 1)
      if !overflows { return bytes }
    }
    throw invalid(expected: "a number of bytes, such as \(name)=\(example) (suffixes: K, M, G)")
  }

  func readSize() throws(Failure) -> UInt32 {
    guard let bytes = value.flatMap({ UInt32($0.shown) }), bytes >= 4096 else {
      throw invalid(expected: "a number of bytes of at least 4096")
    }
    return bytes
  }

  func cacheMode() throws(Failure) -> CacheMode {
    switch value?.shown {
    case "coherent": return .coherent
    case "none": return .none
    case let text:
      guard let seconds = text.flatMap({ Double($0) }), seconds >= 0, seconds <= 1e9 else {
        throw invalid(expected: "\(name)=coherent, \(name)=none or \(name)=SECONDS")
      }
      return seconds == 0 ? .none : .seconds(seconds)
    }
  }

  /// A positive number of seconds, in milliseconds.
  func seconds() throws(Failure) -> CInt {
    guard let seconds = value.flatMap({ Double($0.shown) }), seconds >= 0.1, seconds <= 1e6 else {
      throw invalid(expected: "a number of seconds from 0.1 to 1000000, such as \(name)=10")
    }
    return CInt(seconds * 1000)
  }

  /// Milliseconds as seconds, with as many decimal places as they need.
  static func shownSeconds(_ milliseconds: CInt) -> String {
    milliseconds % 1000 == 0 ? "\(milliseconds / 1000)" : "\(Double(milliseconds) / 1000)"
  }

  /// A number of seconds, in milliseconds; nil for `0` and `off`.
  func watchdog() throws(Failure) -> CInt? {
    let text = value.map(\.shown) ?? ""
    if text == "off" || text == "0" { return nil }
    guard let seconds = Double(text), seconds >= 1, seconds <= 86_400 else {
      throw invalid(expected: "a number of seconds from 1 to 86400, or off, such as \(name)=30")
    }
    return CInt(seconds * 1000)
  }

  /// A number within a range.
  func count(in range: ClosedRange<Int>) throws(Failure) -> Int {
    guard let count = value.flatMap({ Int($0.shown) }), range.contains(count) else {
      throw invalid(
        expected:
          "a number from \(range.lowerBound) to \(range.upperBound), such as \(name)=\(range.upperBound)")
    }
    return count
  }

  /// Whether names are compared without case.
  func isInsensitive() throws(Failure) -> Bool {
    guard let value, let folds = ["sensitive": false, "insensitive": true][value.shown] else {
      throw invalid(expected: "\(name)=sensitive or \(name)=insensitive")
    }
    return folds
  }

  /// Whether tables of strings are merged.
  func isMerged() throws(Failure) -> Bool {
    guard let value, let merges = ["override": false, "merge": true][value.shown] else {
      throw invalid(expected: "\(name)=override or \(name)=merge")
    }
    return merges
  }

  /// Whether overdue layers are skipped.
  func timeoutAction() throws(Failure) -> Bool {
    guard let value, let skips = ["error": false, "skip": true][value.shown] else {
      throw invalid(expected: "\(name)=error or \(name)=skip")
    }
    return skips
  }

  func languages() throws(Failure) -> [[UInt8]] {
    let languages = value.map { Self.split($0, at: UInt8(ascii: ":")).map(Self.unescape) } ?? [[]]
    if languages.contains(where: { $0.isEmpty || $0.contains(UInt8(ascii: "/")) }) {
      throw invalid(expected: "\(name)=LANG[:LANG...], such as \(name)=fr:en")
    }
    return languages
  }

  func scale() throws(Failure) -> Int {
    guard let scale = value.flatMap({ Int($0.shown) }), (1...100).contains(scale) else {
      throw invalid(expected: "\(name)=N, an integer from 1 to 100")
    }
    return scale
  }

  func idiom() throws(Failure) -> ResourceOptions.Idiom {
    guard let idiom = value.flatMap({ ResourceOptions.Idiom(rawValue: $0.shown) }) else {
      throw invalid(expected: "\(name)=phone or \(name)=pad")
    }
    return idiom
  }

  func scheme() throws(Failure) -> String {
    guard let value, Scheme.isName(value), value.shown.lowercased() != "bundlefs" else {
      throw invalid(
        expected: "\(name)=NAME, a letter followed by letters, digits, '+', '-' and '.'; not bundlefs")
    }
    return value.shown.lowercased()
  }

  /// Splits a list of layers at its colons, as `split`, but for those of a URL's scheme, user and port.
  static func splitLayers(_ list: [UInt8]) -> [[UInt8]] {
    var parts: [[UInt8]] = []
    var rest = split(list, at: UInt8(ascii: ":"))[...]
    while var part = rest.popFirst() {
      while let next = rest.first, RemoteURL.ownsColon(after: part[...], before: next[...]) {
        part += [UInt8(ascii: ":")] + next
        rest.removeFirst()
      }
      parts.append(part)
    }
    return parts
  }

  /// Splits at the separators that no backslash escapes; the parts keep their backslashes.
  static func split(_ list: [UInt8], at separator: UInt8) -> [[UInt8]] {
    var parts: [[UInt8]] = [[]]
    var isEscaped = false
    for byte in list {
      if byte == separator, !isEscaped {
        parts.append([])
      } else {
        parts[parts.count - 1].append(byte)
      }
      isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
    }
    return parts
  }

  /// Adds the backslashes that `unescape` removes.
  static func escape(_ bytes: [UInt8]) -> [UInt8] {
    let special: [UInt8] = [UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\\")]
    return bytes.flatMap { special.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
  }

  /// Removes the backslashes before `,`, `:` and `\`.
  static func unescape(_ bytes: [UInt8]) -> [UInt8] {
    let special: [UInt8] = [UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\\")]
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count, special.contains(bytes[index + 1]) {
        index += 1
      }
      result.append(bytes[index])
      index += 1
    }
    return result
  }
}
