/// The code of a Markdown document: indented blocks, split at blank lines, and fenced ones.
struct DocumentedBlocks {
  /// One chunk of code.
  struct Block: Equatable {
    /// The heading above it.
    let section: String
    /// The number of its first line.
    let line: Int
    var lines: [String]
  }

  /// In the order of the document.
  let blocks: [Block]

  init(of document: Document) throws { self.init(try document.text()) }

  init(_ text: String) {
    var reader = Reader()
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) { reader.take(String(line)) }
    reader.end()
    blocks = reader.blocks
  }

  /// The blocks below a heading.
  func section(_ title: String) -> [Block] { blocks.filter { $0.section == title } }

  private struct Reader {
    var blocks: [Block] = []
    private var section = ""
    private var isFenced = false
    private var number = 0
    private var current: Block?

    mutating func take(_ line: String) {
      number += 1
      if line.hasPrefix("```") {
        end()
        isFenced.toggle()
      } else if isFenced || line.hasPrefix("    ") {
        append(isFenced ? line : String(line.dropFirst(4)))
      } else {
        end()
        if line.hasPrefix("#") { section = String(line.drop { $0 == "#" }.drop { $0 == " " }) }
      }
    }

    mutating func end() {
      if let current { blocks.append(current) }
      current = nil
    }

    private mutating func append(_ line: String) {
      if current == nil { current = Block(section: section, line: number, lines: []) }
      current?.lines.append(line)
    }
  }
}
