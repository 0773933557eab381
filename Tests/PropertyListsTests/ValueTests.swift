import Foundation
import PropertyLists
import TestSupport
import Testing

/// Whole values, compared with Foundation's.
@Suite struct ValueTests {
  /// A value as Foundation has it, with types that compare; dates to the second, as XML has them.
  private static func comparable(_ value: PropertyListValue) -> AnyHashable {
    switch value {
    case .string(let text): Array(text.utf8)
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .real(let value): value
    case .boolean(let value): value ? "true" : "false"
    case .data(let bytes): [bytes]
    case .date(let seconds): "date \(Int(seconds))"
    case .array(let values): values.map(comparable)
    case .dictionary(let dictionary):
      Dictionary(dictionary.members.map { (Array($0.key.utf8), comparable($0.value)) }) { $1 }
    case .unknown: "unknown"
    }
  }

  private static func comparable(_ value: Any) -> AnyHashable {
    switch value {
    case let text as String: Array(text.utf8)
    case let bytes as Data: [Array(bytes)]
    case let date as Date: "date \(Int(date.timeIntervalSinceReferenceDate))"
    case let flag as Bool where type(of: value) == Bool.self: flag ? "true" : "false"
    case let integer as Int: Double(integer)
    case let number as Double: number
    case let values as [Any]: values.map(comparable)
    case let dictionary as [String: Any]:
      Dictionary(uniqueKeysWithValues: dictionary.map { (Array($0.key.utf8), comparable($0.value)) })
    default: "unknown"
    }
  }

  /// Values of all types, up to some levels deep.
  private static func value(_ random: inout SplitMix64, depth: Int) -> Any {
    let texts = ["", "a", "é€😀", "<&>\"'", "x\ny", String(repeating: "long ", count: 60)]
    switch random.number(0...(depth > 0 ? 7 : 5)) {
    case 0: return random.pick(texts)
    case 1: return random.pick([0, 1, -1, 255, 256, 65_536, -70_000, Int(Int32.max) + 1, .max, .min])
    case 2: return random.pick([0.5, -1.25, 1e300, 1e-300, 3.141592653589793])
    case 3: return random.percent(50)
    case 4: return Data((0..<random.number(0...40)).map { UInt8($0 * 7 & 0xFF) })
    case 5:
      return Date(timeIntervalSinceReferenceDate: Double(random.number(-60_000_000_000...200_000_000_000)))
    case 6: return (0..<random.number(0...20)).map { _ in value(&random, depth: depth - 1) }
    default: return dictionary(&random, depth: depth - 1)
    }
  }

  private static func dictionary(_ random: inout SplitMix64, depth: Int) -> [String: Any] {
    var dictionary: [String: Any] = [:]
    for _ in 0..<random.number(0...8) {
      dictionary["\(random.pick(["k", "é", "", "a long key"]))\(random.number(0...20))"] = value(
        &random, depth: depth)
    }
    return dictionary
  }

  @Test(
    "random values", arguments: Seeds.chosen(4), [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func random(seed: UInt64, format: PropertyListSerialization.PropertyListFormat) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<100 {
      let root = Self.dictionary(&random, depth: 3)
      let data = try PropertyListSerialization.data(fromPropertyList: root, format: format, options: 0)
      let list = PropertyList(Array(data))
      #expect(list.error == nil)
      #expect(Self.comparable(.dictionary(list.dictionary)) == Self.comparable(root), "\(root)")
    }
  }

  @Test(
    "scalars of XML",
    arguments: [
      ("<integer> 12 </integer>", .integer(12)), ("<integer>-0x1F</integer>", .integer(-31)),
      ("<integer>+7</integer>", .integer(7)),
      ("<integer>18446744073709551615</integer>", .unsigned(.max)),
      ("<integer>18446744073709551616</integer>", .unknown),
      ("<integer></integer>", .unknown), ("<integer>1x</integer>", .unknown),
      ("<integer>--1</integer>", .unknown),
      ("<real>1.5e3</real>", .real(1500)), ("<real>x</real>", .unknown), ("<true/>", .boolean(true)),
      ("<false/>", .boolean(false)),
      ("<data>AAEC\n Aw==</data>", .data([0, 1, 2, 3])), ("<data>A!</data>", .unknown),
      ("<data/>", .data([])),
      ("<date>2001-01-01T00:00:00Z</date>", .date(0)),
      ("<date>2000-02-29T12:00:01Z</date>", .date(-26_481_599)),
      ("<date>0000-01-01T00:00:00Z</date>", .date(-63_145_526_400)),
      ("<date>2001-13-01T00:00:00Z</date>", .unknown),
      ("<date>2001-01-01</date>", .unknown), ("<date>99999-01-01T00:00:00Z</date>", .unknown),
      ("<date></date>", .unknown),
    ] as [(String, PropertyListValue)])
  func scalars(text: String, expected: PropertyListValue) {
    let list = PropertyList(Array("<plist><dict><key>k</key>\(text)</dict></plist>".utf8))
    #expect(list.error == nil && list.dictionary["k"] == expected)
  }

  @Test("OpenStep values")
  func openStep() {
    let list = PropertyList(Array("{ a = (x, \"y\", {b = <0fbd 7>;}); c = {}; }".utf8))
    let inner = PropertyListDictionary(members: [.init(key: "b", value: .data([0x0F, 0xBD, 0x70]))])
    #expect(list.dictionary["a"] == .array([.string("x"), .string("y"), .dictionary(inner)]))
    #expect(list.dictionary["c"]?.dictionary?.members.isEmpty == true && list.dictionary["d"] == nil)
  }

  @Test(
    "the position of an error, and what precedes it",
    arguments: [
      ("<plist><dict>\n<key>a</key><string>é</string><key>b</key>\n<oops/></dict></plist>", 3, 1, 1),
      ("<plist><dict>\n<key>a</key><true/>é", 2, 20, 1), ("<plist>", 1, 8, 0),
      ("{ a = b;\r\n c = (d e); }", 2, 9, 1),
      ("{ a = b; ", 1, 10, 1), ("", 1, 1, 0),
    ])
  func errors(text: String, line: Int, column: Int, members: Int) throws {
    let list = PropertyList(Array(text.utf8))
    let error = try #require(list.error)
    #expect(error.position?.line == line && error.position?.column == column, "\(error)")
    #expect(list.dictionary.members.count == members)
  }

  @Test("many objects that overlap or contain each other stay within the size of the file")
  func amplification() throws {
    try LinearTime.check(name: "nested strings", largest: 1280 << 10) { size in
      Self.overlapping(size)
    } parse: {
      #expect(PropertyList($0).error != nil)
    }
    // Each of 64 arrays has the next one twice.
    var objects: [[UInt8]] = [[0xD1, 1, 2], [0x51, 0x61]]
    for index in 0..<64 { objects.append([0xA2, UInt8(index + 3), UInt8(index + 3)]) }
    objects.append([0x51, 0x61])
    #expect(PropertyList(Self.binary(objects)).error != nil)
    // Many dictionaries with one key: long ones together exceed the file by far.
    for (size, isWhole) in [(50, true), (250, false)] {
      let key = [0x5F, 0x10, UInt8(size)] + [UInt8](repeating: 0x78, count: size)
      let dictionaries = [[UInt8]](repeating: [0xD1, 3, 1], count: 200)
      let list = [0xAF, 0x10, 200] + (4..<204).map { UInt8($0) }
      let file = Self.binary([[0xD1, 1, 2], [0x51, 0x61], list, key] + dictionaries)
      #expect((PropertyList(file).error == nil) == isWhole)
    }
    // A dictionary that has itself as a value.
    #expect(PropertyList(Self.binary([[0xD1, 1, 0], [0x51, 0x61]])).error != nil)
  }

  /// An array of strings, each of which begins within the one before and reaches to the end.
  private static func overlapping(_ size: Int) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    let count = size / 16
    var objects: [UInt8] = [0xD1, 0, 0, 0, 1, 0, 0, 0, 2, 0x51, 0x61, 0xAF, 0x12] + number(count)
    for index in 0..<count { objects += number(index + 3) }
    let start = 8 + objects.count
    for index in 0..<count { objects += [0x5F, 0x12] + number((count - index - 1) * 6) }
    let offsets = [8, 17, 19] + (0..<count).map { start + $0 * 6 }
    let trailer = [0, 0, 0, 0, 0, 0, 4, 4] as [UInt8]
    return Array("bplist00".utf8) + objects + offsets.flatMap(number) + trailer + [0, 0, 0, 0]
      + number(offsets.count)
      + [UInt8](repeating: 0, count: 12) + number(8 + objects.count)
  }

  private static func binary(_ objects: [[UInt8]]) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }
    var (bytes, offsets) = (Array("bplist00".utf8), [UInt8]())
    for object in objects {
      offsets += number(bytes.count)
      bytes += object
    }
    let zeros = [UInt8](repeating: 0, count: 6)
    return bytes + offsets + [0, 0, 0, 0, 0, 0, 2, 1] + zeros + number(objects.count) + zeros + number(0)
      + zeros
      + number(bytes.count)
  }
}
