@testable import Bundles
import Layers
import Posix

/// libFuzzer's entry point. The input is the text of a table: MIME types, languages, mounts, compared names.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  checkTypes(text)
  checkLanguages(text)
  for line in text.split(separator: 0x0A) {
    if let entry = MountTableEntry(line: line) { precondition(entry.mountPoint.count <= line.count) }
  }
  if let comparison = ComparisonText(text) {
    precondition(comparison.unchanged >= 0 && comparison.names.allSatisfy { !$0.name.isEmpty })
  }
  return 0
}

/// The first line is the name of a file, the rest a table.
private func checkTypes(_ text: [UInt8]) {
  let name = Array(text.prefix { $0 != 0x0A }.prefix(255))
  let table = Array(text.dropFirst(name.count))
  for type in [
    GlobTable(files: [table, table]).type(for: name), ExtensionTable(files: [table]).type(for: name),
  ] {
    if let type { precondition(type.contains("/")) }
  }
  if let type = MIMETypes.type(inAttribute: text) { precondition(type.utf8.count <= 255) }
  _ = TextEncoding.name(ofContent: text, isWhole: false, type: MIMETypes.type(ofContent: text))
}

private func checkLanguages(_ text: [UInt8]) {
  let fallbacks = Language.fallbacks(of: text)
  precondition(fallbacks.count <= 17 && fallbacks.allSatisfy { $0.count <= max(text.count, 7) })
  for folder in Language.folderNames(of: text) {
    precondition(Language.localization(ofFolder: folder) != nil || text.isEmpty)
  }
  _ = Language.ofUser { _ in String(decoding: text, as: UTF8.self) }
}
