/// Puts arguments into a format and its plural variables.
///
/// A variable without a position takes the next argument, and a specifier without a position in one of its forms the
/// variable's. What has no argument stays as it is written.
struct FormatResolution {
  private let arguments: [FormatArgument]
  private let variables: [String: PluralTable.Variable]
  private let language: String
  private var nextArgument = 0
  private var remainingVariables = FormatResolution.maxVariables
  private var text: [UInt8] = []

  /// How often variables are replaced, and how deep they nest. Each form could have the next one twice.
  static let maxVariables = 256
  static let maxDepth = 16

  init(arguments: [FormatArgument], variables: [String: PluralTable.Variable], language: String) {
    (self.arguments, self.variables, self.language) = (arguments, variables, language)
  }

  /// The text for a format.
  static func text(
    of format: String, arguments: [FormatArgument], variables: [String: PluralTable.Variable] = [:],
    language: String = ""
  ) -> String {
    var resolution = FormatResolution(arguments: arguments, variables: variables, language: language)
    resolution.append(format, argument: nil, depth: 0)
    return String(decoding: resolution.text, as: UTF8.self)
  }

  /// - Parameter argument: the index of the variable's argument, in a form.
  private mutating func append(_ format: String, argument: Int?, depth: Int) {
    var scanner = FormatScanner(format)
    while let part = scanner.next() {
      switch part {
      case .text(let bytes): text += bytes
      case .specifier(let specifier):
        let index = specifier.position.map { $0 - 1 } ?? argument ?? takeArgument()
        text +=
          index < arguments.count ? Array(specifier.text(of: arguments[index]).utf8)[...] : scanner.written
      case .variable(let name, let position):
        if !appendVariable(name, position, depth: depth) { text += scanner.written }
      }
    }
  }

  /// - Returns: whether the variable has a form for its argument.
  private mutating func appendVariable(_ name: String, _ position: Int?, depth: Int) -> Bool {
    let variable = variables[name]
    let index = (position ?? variable?.argument).map { $0 - 1 } ?? takeArgument()
    guard depth < Self.maxDepth, remainingVariables > 0, arguments.indices.contains(index),
      let form = variable?.form(for: arguments[index], in: language)
    else { return false }
    remainingVariables -= 1
    append(form, argument: index, depth: depth + 1)
    return true
  }

  private mutating func takeArgument() -> Int {
    defer { nextArgument += 1 }
    return nextArgument
  }
}

extension PluralTable {
  /// The text of a key for numbers and other arguments.
  /// - Parameter language: the language of the table, whose plural rule chooses the forms.
  /// - Returns: nil without the key.
  public func text(for key: String, arguments: [FormatArgument], language: String) -> String? {
    self[key].map { entry in
      FormatResolution.text(
        of: entry.format(for: arguments, language: language), arguments: arguments,
        variables: entry.variables, language: language)
    }
  }
}

extension PluralTable.Entry {
  /// The form of the whole text, or the only one.
  fileprivate func format(for arguments: [FormatArgument], language: String) -> String {
    guard let whole, let index = countedArgument(arguments) else { return format }
    return whole.form(for: arguments[index], in: language) ?? format
  }

  /// The first number in the format chooses the form, or the first number at all where the format shows none.
  private func countedArgument(_ arguments: [FormatArgument]) -> Int? {
    var scanner = FormatScanner(format)
    var next = 0
    while let part = scanner.next() {
      guard case .specifier(let specifier) = part else { continue }
      let index = specifier.position.map { $0 - 1 } ?? next
      if specifier.position == nil { next += 1 }
      if arguments.indices.contains(index), arguments[index].isNumber { return index }
    }
    return arguments.firstIndex(where: \.isNumber)
  }
}

extension StringTable {
  /// Puts arguments into a format as `printf(3)` does. One of another type than its specifier's is converted.
  public static func text(of format: String, arguments: [FormatArgument]) -> String {
    FormatResolution.text(of: format, arguments: arguments)
  }
}
