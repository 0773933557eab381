import PropertyLists
import StringTables

/// libFuzzer's entry point. The input is a table of strings, or of plural forms.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let content = Array(UnsafeBufferPointer(start: start, count: count))
  let parsed = StringTable.parse(content)
  checkPosition(parsed.error, count)
  let again = StringTable.parse(parsed.table.written())
  precondition(again.error == nil && again.table == parsed.table, "what is written is read back")
  precondition(StringTable.merge([parsed.table, again.table]) == parsed.table)
  for entry in parsed.table.entries.prefix(16) {
    let arguments: [FormatArgument] = [.integer(.min), .number(1e300), .text("é")]
    let text = StringTable.text(of: entry.value, arguments: arguments)
    precondition(text.utf8.count <= 1100 * (entry.value.utf8.count + 1))
  }
  checkPlurals(content)
  return 0
}

private func checkPlurals(_ content: [UInt8]) {
  let plurals = PluralTable.parse(content)
  checkPosition(plurals.error, content.count)
  for member in PropertyList(content).dictionary.members.prefix(16) {
    guard let entry = plurals.table[member.key] else { continue }
    // Long forms would multiply.
    let size = entry.variables.values.reduce(entry.format.utf8.count) {
      $1.forms.values.reduce($0) { $0 + $1.utf8.count }
    }
    if size > 1000 { continue }
    for number: Int64 in [0, 1, 2, 5, .min] {
      _ = plurals.table.text(for: member.key, arguments: [.integer(number), .integer(3)], language: "ru")
    }
  }
}

private func checkPosition(_ error: PropertyListError?, _ count: Int) {
  guard let position = error?.position else { return }
  precondition((1...count + 1).contains(position.line) && (1...count + 1).contains(position.column))
}
