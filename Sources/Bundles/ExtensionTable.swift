/// Types by extension, as files like `/etc/mime.types` list them: a type and its extensions a line.
struct ExtensionTable: Sendable {
  private var types: [[UInt8]: String] = [:]

  /// - Parameter files: the files' contents; what an earlier file or line says of an extension holds.
  init(files: [[UInt8]]) {
    for file in files {
      for line in file.split(separator: UInt8(ascii: "\n")) { add(line) }
    }
  }

  private mutating func add(_ line: ArraySlice<UInt8>) {
    let words = line.prefix { $0 != UInt8(ascii: "#") }.split { $0 <= 0x20 }
    guard let first = words.first, first.contains(UInt8(ascii: "/")) else { return }
    let type = String(decoding: first, as: UTF8.self)
    for word in words.dropFirst() where types[Array(word)] == nil { types[Array(word)] = type }
  }

  /// The type of a name by its longest extension that is listed, as it is written or else in lower case; a
  /// leading dot begins none.
  func type(for name: [UInt8]) -> String? {
    if types.isEmpty { return nil }
    let lower = lowercased(name)
    for place in name.indices.dropFirst() where name[place] == UInt8(ascii: ".") {
      if let type = types[Array(name[(place + 1)...])] ?? types[Array(lower[(place + 1)...])] { return type }
    }
    return nil
  }
}
