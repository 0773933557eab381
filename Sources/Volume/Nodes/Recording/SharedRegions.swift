/// The regions, in bytes, of the memory that the workers of a mount share: each has one subject. A page that was never
/// written takes no memory.
public enum SharedRegions {
  /// The holder's state, the INIT request and the read locks.
  public static let holder = 0..<64 << 10
  static let header = 64 << 10..<128 << 10
  static let journal = 128 << 10..<512 << 10
  static let inodeNumbers = 512 << 10..<16 << 20
  static let openings = 16 << 20..<18 << 20
  static let polls = 18 << 20..<19 << 20
  static let intents = 19 << 20..<20 << 20
  public static let archives = 20 << 20..<24 << 20
  public static let roots = 24 << 20..<26 << 20
  public static let tableNumber = 26 << 20..<27 << 20
  public static let tables = 27 << 20..<31 << 20
  static let resources = 32 << 20..<60 << 20
  static let cookies = 64 << 20..<192 << 20
  static let control = 192 << 20..<960 << 20
  static let spellings = 960 << 20..<1 << 30
  static let links = 1 << 30..<2 << 30
  static let names = 2 << 30..<18 << 30
  static let nodes = 18 << 30..<34 << 30
  static let fingerprints = 34 << 30..<36 << 30

  static let all = [
    holder, header, journal, inodeNumbers, openings, polls, intents, archives, roots, tableNumber, tables,
    resources,
    cookies, control, spellings, links, names, nodes, fingerprints,
  ]
  static let size = 36 << 30
}
