import PropertyLists
import StringTables

/// libFuzzer's entry point. The input is a catalog of strings: JSON, or a property list.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let content = Array(UnsafeBufferPointer(start: start, count: count))
  for variant in [TextVariant(), TextVariant(device: "ipad", width: 10)] {
    check(StringCatalog.parse(content, for: variant), count)
    check(StringCatalog.parse(locTable: content, for: variant), count)
  }
  return 0
}

private func check(_ parsed: ParsedTable<StringCatalog>, _ count: Int) {
  if let position = parsed.error?.position {
    precondition((1...count + 1).contains(position.line) && (1...count + 1).contains(position.column))
  }
  let keys = parsed.table.untranslated.entries.map(\.key)
  for language in parsed.table.languages.prefix(16) {
    guard let tables = parsed.table[language] else { preconditionFailure("a language without tables") }
    for key in (tables.strings.entries.map(\.key) + keys).prefix(16) {
      _ = tables.strings[key].map { StringTable.text(of: $0, arguments: [.integer(.min)]) }
      guard let entry = tables.plurals[key] else { continue }
      // Long forms would multiply.
      let size = entry.variables.values.reduce(entry.format.utf8.count) {
        $1.forms.values.reduce($0) { $0 + $1.utf8.count }
      }
      if size > 1000 { continue }
      for number: Int64 in [0, 1, 2, 5, .min] {
        _ = tables.plurals.text(for: key, arguments: [.integer(number), .text("é")], language: language)
      }
    }
  }
}
