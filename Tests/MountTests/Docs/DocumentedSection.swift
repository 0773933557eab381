/// What a test does with the blocks below one heading of a document.
struct DocumentedSection: Sendable, CustomStringConvertible {
  /// What a block is.
  enum Kind: Sendable, Equatable {
    /// Commands. Each comment behind one is what it prints, or one of the section's remarks.
    case commands
    /// A script, which is written to a file and executed.
    case script
    /// What the last command of the block before prints.
    case output
    /// None of these: a synopsis, another language, or commands that another test runs.
    case other
  }

  /// The heading.
  let title: String
  /// One for each block.
  let kinds: [Kind]
  /// Commands that make what the text takes for granted, in an empty home directory.
  var before = ""
  /// Comments that say something else than what their command prints.
  var remarks: Set<String> = []
  /// Commands that run in another terminal, until the mount ends. They listen to `mnt/.routes`.
  var background: Set<String> = []
  /// Commands that fail.
  var failing: Set<String> = []
  /// What a reader replaces, and by what; `HOME` is the home directory.
  var replacing: [String: String] = [:]
  /// Bash scripts in place of programs that need a network, by name.
  var programs: [String: String] = [:]
  /// Commands that check the end. `$printed` is a file with what the last command in the background has printed.
  var after = ""

  var description: String { title }
}
