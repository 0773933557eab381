import Foundation

/// The command line.
struct Arguments {
  static let usage = """
    usage: greeter [OPTION…] BUNDLE [SUBSTITUTION…]
           greeter [OPTION…] --mount MOUNTPOINT
      --language NAME   the localization to prefer, such as fr
      --logo FILE       copy the logo to FILE
      --url URL         greet by a URL such as greeter://greet/Ada/2; may be repeated
    """

  /// Where the bundle is.
  enum Source {
    /// A directory or an archive, and those that override its files, the first with precedence.
    case layers(main: URL, substitution: [URL])
    /// The directory on which the bundle is mounted.
    case mount(URL)
  }

  private(set) var language: String?
  /// The copy of the logo.
  private(set) var logo: URL?
  /// The greetings to begin with.
  private(set) var urls: [URL] = []
  private var layers: [URL] = []
  private var mountPoint: URL?

  /// - Parameter words: the command line without the program's name.
  /// - Throws: ``GreeterError/usage(_:)``.
  init(_ words: some Sequence<String>) throws(GreeterError) {
    var words = words.makeIterator()
    while let word = words.next() {
      if !word.hasPrefix("-") {
        layers.append(URL(filePath: word))
      } else if let value = words.next() {
        try set(word, value)
      } else {
        throw .usage("\(word): no such option, or its value is missing")
      }
    }
    if layers.isEmpty == (mountPoint == nil) { throw .usage("either BUNDLE or --mount is needed") }
  }

  var source: Source {
    mountPoint.map { .mount($0) } ?? .layers(main: layers[0], substitution: Array(layers.dropFirst()))
  }

  private mutating func set(_ option: String, _ value: String) throws(GreeterError) {
    switch option {
    case "--mount": mountPoint = URL(filePath: value)
    case "--language": language = value
    case "--logo": logo = URL(filePath: value)
    case "--url":
      guard let url = URL(string: value) else { throw .usage("'\(value)' is not a URL") }
      urls.append(url)
    default: throw .usage("\(option): no such option")
    }
  }
}
