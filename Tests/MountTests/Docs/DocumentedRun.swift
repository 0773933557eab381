import Posix
import TestSupport
import Testing

/// Runs the commands of a section in one shell, and compares what they print with what the document says.
struct DocumentedRun {
  private let section: DocumentedSection
  private let folder: TemporaryFolder
  private let home: ByteString
  private let lines: [DocumentedLine]

  init(_ section: DocumentedSection, _ blocks: [DocumentedBlocks.Block]) throws {
    self.section = section
    #expect(section.kinds.count == blocks.count, "blocks below \"\(section)\"")
    lines = Self.lines(zip(section.kinds, blocks))
    folder = try TemporaryFolder()
    home = try folder.folder("home/me")
    let programs = try folder.folder("bin")
    try (programs / "bundlefs").makeLink(to: try Binary.underTest())
    for (name, script) in section.programs {
      try (programs / ByteString(name)).write("#!/bin/bash\n" + script + "\n")
      try (programs / ByteString(name)).setMode(0o755)
    }
  }

  /// Runs them all.
  func run() throws {
    let child = try Child(
      Command(["/bin/bash", "-c", ByteString(script)], environment: environment, directory: home))
    defer {
      // It ends what runs in the background, too.
      try? child.kill()
      MountTable.clear(below: folder.path)
    }
    let outcome = try child.wait(timeout: 120)
    #expect(outcome.status == 0, "\(section): \(outcome.errorText)")
    for (index, line) in lines.enumerated() {
      guard let status = status(index) else {
        throw TestFailure("\(section), line \(line.number): never run")
      }
      check(line, printed(index), status)
    }
    let unused = section.remarks.subtracting(lines.flatMap(\.comments))
    #expect(unused.isEmpty, "remarks that the document does not have")
  }

  private static func lines(
    _ blocks: some Sequence<(DocumentedSection.Kind, DocumentedBlocks.Block)>
  ) -> [DocumentedLine] {
    var lines: [DocumentedLine] = []
    for (kind, block) in blocks {
      switch kind {
      case .commands: lines += DocumentedLine.lines(of: block)
      case .script: lines.append(DocumentedLine.script(block))
      case .output:
        if let last = lines.indices.last { lines[last].output = block.lines.joined(separator: "\n") }
      case .other: break
      }
    }
    return lines
  }

  private var environment: [String: String] {
    let path = Binary.variable("PATH") ?? "/usr/bin:/bin"
    return [
      "HOME": home.text, "PATH": "\(folder.path.text)/bin:\(path)", "LC_ALL": "C.UTF-8",
      "XDG_CONFIG_HOME": "\(home.text)/.config",
    ]
  }

  /// Each command's output and status go to files of their own.
  private var script: String {
    let files = "'\(folder.path.text)'"
    var script = "set -eu\n{ :\n\(section.before)\n} >&2\nset +e\n"
    for (index, line) in lines.enumerated() {
      let command = replaced(line.command)
      script += "exec >\(files)/\(index) 2>&1\n"
      if command.hasPrefix("cat ") || command.hasPrefix("ls ") { script += Self.barrier }
      if section.background.contains(line.command) {
        script +=
          "printed=\(files)/\(index)\n\(command.hasSuffix("&") ? command : command + " &")\n\(Self.wait)"
      } else {
        script += "\(command)\n"
      }
      script += "echo $? >\(files)/\(index).status\n"
    }
    return script + "exec >&2\nset -e\n\(section.after)\n"
  }

  /// The mount shows an edit of a layer within milliseconds, or later on a busy machine.
  private static let barrier = "for mount in ~/*/; do ! mountpoint -q $mount || bundlefs sync $mount; done\n"

  /// The next command may notify what runs in the background as soon as that has opened the control file.
  private static let wait = """
    for ((i = 0; i < 2000; i++)); do
      ! readlink /proc/[0-9]*/fd/* | grep -qxF ~/mnt/.routes || break
      sleep 0.02
    done

    """

  private func replaced(_ text: String) -> String {
    section.replacing.reduce(text) { text, pair in
      text.replacing(pair.key, with: pair.value.replacing("HOME", with: home.text))
    }
  }

  /// What a command printed, with the documents' home directory.
  private func printed(_ index: Int) -> String {
    let text = (try? (folder / ByteString("\(index)")).readText()) ?? ""
    return text.replacing(folder.path.text + "/home", with: "/home").replacing(folder.path.text, with: "")
      .replacing(#/\/bin\/bash: line [0-9]+: /#, with: "bash: ").replacing(
        #/"time":"[^"]*"/#, with: #""time":"…""#)
  }

  private func status(_ index: Int) -> String? {
    try? (folder / ByteString("\(index).status")).readText()
  }

  private func check(_ line: DocumentedLine, _ printed: String, _ status: String) {
    let place: Comment = "\(section), line \(line.number): \(line.command)\nprinted: \(printed)"
    #expect((status == "0\n") == !section.failing.contains(line.command), "\(place)\nstatus \(status)")
    for comment in line.comments where !section.remarks.contains(comment) {
      #expect(DocumentedLine.matches(printed, comment), "\(place)\ncomment: \(comment)")
    }
    if let output = line.output {
      let wanted = output.replacing(#/"time":"[^"]*"/#, with: #""time":"…""#)
      #expect(DocumentedLine.matches(printed, wanted), "\(place)\nwanted: \(wanted)")
    }
  }
}
