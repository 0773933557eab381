/// The MIME types in files like `/etc/mime.types`, whose lines are a type and its extensions.
struct ExtensionTable: Sendable {
  private var types: [[UInt8]: String] = [:]

  /// - Parameter files: The contents of the files. The first line with an extension wins.
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

  /// The type of the longest known extension, as given or in lower case. A leading dot does not begin an extension.
  func type(for name: [UInt8]) -> String? {
    if types.isEmpty { return nil }
    let lower = lowercased(name)
    for index in name.indices.dropFirst() where name[index] == UInt8(ascii: ".") {
      if let type = types[Array(name[(index + 1)...])] ?? types[Array(lower[(index + 1)...])] { return type }
    }
    return nil
  }
}
