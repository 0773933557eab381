/// Where a layer goes: `--top`, `--bottom`, `--above LAYER` or `--below LAYER`.
enum LayerPosition: Equatable {
  /// Above all other substitutions, but below the layer that takes the changes of a writable mount.
  case top
  /// Below all other substitutions.
  case bottom
  case above([UInt8])
  case below([UInt8])

  /// Reads a flag, and its layer from the arguments that follow.
  /// - Returns: nil if the word is no position.
  /// - Throws: if the layer is missing.
  init?(_ flag: [UInt8], _ rest: inout ArraySlice<[UInt8]>) throws(Failure) {
    switch flag.shown {
    case "--top": self = .top
    case "--bottom": self = .bottom
    case "--above": self = .above(try Self.layer(after: flag, &rest))
    case "--below": self = .below(try Self.layer(after: flag, &rest))
    default: return nil
    }
  }

  private static func layer(
    after flag: [UInt8], _ rest: inout ArraySlice<[UInt8]>
  ) throws(Failure) -> [UInt8] {
    guard let layer = rest.popFirst(), !layer.isEmpty else {
      throw .usage("'\(flag.shown)' needs a LAYER after it")
    }
    return layer
  }
}
