/// The arguments of `bundlefs apply`.
struct ApplyArguments {
  let mountPoint: [UInt8]
  /// Empty for the whole mount.
  private(set) var paths: [[UInt8]] = []
  /// The layer that gets the entries, as it was given; nil for MAIN.
  private(set) var target: [UInt8]?
  private(set) var isDryRun = false
  private(set) var isConfirmed = false
  private(set) var isJSON = false

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    var rest = arguments[...]
    var flags: Set<String> = []
    while let word = rest.popFirst() {
      switch word.shown {
      case "--dry-run", "--yes", "--json": flags.insert(word.shown)
      case "--to":
        guard let layer = rest.popFirst() else { throw .usage("'--to' needs a LAYER") }
        if target != nil { throw .usage("'--to' is given twice; 'apply' writes to one LAYER") }
        target = layer
      case "--":
        operands += rest
        rest = []
      case let option where option.hasPrefix("--"): throw .unknownOption(option, of: "apply")
      default: operands.append(word)
      }
    }
    guard let point = operands.first else { throw .usage("'apply' needs a MOUNTPOINT") }
    mountPoint = point
    paths = Array(operands.dropFirst())
    (isDryRun, isConfirmed) = (flags.contains("--dry-run"), flags.contains("--yes"))
    isJSON = flags.contains("--json")
  }
}
