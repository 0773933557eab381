import Layers

/// The arguments of `bundlefs layers`.
struct LayersArguments {
  enum Action: Equatable {
    case list(isJSON: Bool, counts: Bool)
    /// All substitutions, top first.
    case set([[UInt8]])
    /// Layers in the order in which they are to lie.
    case add([[UInt8]], LayerPosition)
    case remove([[UInt8]])
    case move([UInt8], LayerPosition)
    case save(ProfileName)
    case load(ProfileName)
    case profiles(isJSON: Bool)
  }

  let mountPoint: [UInt8]
  let action: Action

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var words = try Words(arguments)
    guard !words.operands.isEmpty else { throw .usage("'layers' needs a MOUNTPOINT") }
    mountPoint = words.operands.removeFirst()
    guard !words.operands.isEmpty else {
      if words.position != nil {
        throw .usage("'layers' takes a position only after 'add' or 'move'")
      }
      action = .list(isJSON: words.isJSON, counts: words.counts)
      return
    }
    let name = words.operands.removeFirst().shown
    if name == "profiles", words.operands.isEmpty, words.position == nil, !words.counts {
      action = .profiles(isJSON: words.isJSON)
      return
    }
    if words.isJSON || words.counts { throw .usage("'layers \(name)' has no options '--json' and '--count'") }
    action = try Self.action(name, words)
  }

  private static let commands = ["set", "add", "remove", "move", "save", "load", "profiles"]

  private static func action(_ name: String, _ words: Words) throws(Failure) -> Action {
    let layers = try words.laid(name)
    if ["set", "remove", "save", "load", "profiles"].contains(name), words.position != nil {
      throw .usage("'layers \(name)' takes no position; 'move' changes the place of a layer")
    }
    if !["set", "save", "load"].contains(name), layers.contains([]) {
      throw .usage("the name of a LAYER after '\(name)' is empty")
    }
    switch name {
    case "set":
      guard layers.count == 1 else {
        throw .usage("'layers set' needs one LAYER[:LAYER...], or '' to leave MAIN alone")
      }
      return .set(try list(layers[0]))
    case "add", "remove":
      if layers.isEmpty { throw .usage("'layers \(name)' needs at least one LAYER") }
      return name == "add" ? .add(layers, words.position ?? .top) : .remove(layers)
    case "move":
      guard layers.count == 1 else { throw .usage("'layers move' needs one LAYER") }
      guard let position = words.position else {
        throw .usage("'layers move' needs a position: --top, --bottom, --above LAYER or --below LAYER")
      }
      return .move(layers[0], position)
    case "save", "load":
      guard layers.count == 1 else { throw .usage("'layers \(name)' needs one NAME of a profile") }
      let profile = try ProfileName(layers[0])
      return name == "save" ? .save(profile) : .load(profile)
    case "profiles": throw .usage("'layers profiles' takes no further argument")
    default:
      let near = Suggestion.nearest(to: name, among: commands)
      throw .usage(
        "'layers' has no command '\(name)'"
          + (near.map { Suggestion.question($0) } ?? "; it has \(commands.joined(separator: ", "))"))
    }
  }

  /// The layers of a list in the syntax of the mount option `substitution=`; none if it is empty.
  private static func list(_ text: [UInt8]) throws(Failure) -> [[UInt8]] {
    if text.isEmpty { return [] }
    let layers = MountOption.splitLayers(text).map(MountOption.unescape)
    if layers.contains([]) {
      throw .usage("'layers set \(text.shown)' has an empty name; write LAYER[:LAYER...]")
    }
    for layer in layers { _ = try LaidPath(given: layer) }
    return layers
  }
}

/// Operands and flags, in any order.
private struct Words {
  var operands: [[UInt8]] = []
  private(set) var isJSON = false
  private(set) var counts = false
  private(set) var position: LayerPosition?
  /// The folder of the mount at which the layers are to be laid.
  private var place: [UInt8]?

  /// The operands of a command, each as `LaidPath.name`.
  func laid(_ command: String) throws(Failure) -> [[UInt8]] {
    guard let place else { return operands }
    if command != "add" {
      throw .usage("'layers \(command)' has no option '--at'; write LAYER@/FOLDER")
    }
    return try operands.map { operand throws(Failure) in
      let layer = try LaidPath(given: operand)
      if !layer.place.isEmpty { throw .usage("'\(operand.shown)' has a folder already; leave out '--at'") }
      do throws(LaidPath.Fault) { return try LaidPath(layer.path, at: place).name } catch {
        throw .usage("'--at \(place.shown)': \(error.reason)")
      }
    }
  }

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var rest = arguments[...]
    while let word = rest.popFirst() {
      guard word.starts(with: "--".utf8) else {
        operands.append(word)
        continue
      }
      switch word.shown {
      case "--json": isJSON = true
      case "--count": counts = true
      case "--at":
        guard let folder = rest.popFirst(), !folder.isEmpty else {
          throw .usage("'--at' needs a FOLDER of the mount after it")
        }
        place = folder
      case "--":
        operands += rest
        return
      default: try read(word, &rest)
      }
    }
  }

  private mutating func read(_ word: [UInt8], _ rest: inout ArraySlice<[UInt8]>) throws(Failure) {
    guard let position = try LayerPosition(word, &rest) else {
      throw .unknownOption(word.shown, of: "layers")
    }
    if self.position != nil { throw .usage("'layers' takes one position; leave out '\(word.shown)'") }
    self.position = position
  }
}
