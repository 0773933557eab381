import Posix
import TestSupport
import Testing

/// The example program over directories and archives.
@Suite struct GreeterTests {
  private func size(_ path: ByteString) throws -> Int { try path.read().count }

  @Test(
    "greets in the languages of its bundle", .timeLimit(.minutes(1)),
    arguments: [
      (
        "en", "greeter://greet/Ada/2",
        [
          "Welcome to Greeter!", "Logo: image/svg+xml, SIZE bytes", "Hello, Ada!", "Hello, Ada!",
          "2 greetings for Ada",
        ]
      ),
      (
        "en", "x:greet/Ada%20L/0",
        ["Welcome to Greeter!", "Logo: image/svg+xml, SIZE bytes", "0 greetings for Ada L"]
      ),
      (
        "fr", "greeter://greet/Zo%C3%A9/1",
        [
          "Bienvenue dans Greeter\u{A0}!", "Logo\u{A0}: image/svg+xml, SIZE octets", "Bonjour, Zoé\u{A0}!",
          "1 salutation pour Zoé",
        ]
      ),
    ])
  func languages(language: String, url: String, expected: [String]) throws {
    let fixture = try GreeterFixture()
    let copy = fixture.folder / "logo.svg"
    let outcome = try fixture.run(
      "--language", ByteString(language), "--url", ByteString(url), "--logo", copy)
    let logo = try (GreeterFixture.bundle / "logo.svg").read()
    let lines = expected.map { $0.replacing("SIZE", with: "\(logo.count)") }
    #expect(outcome.outputText == lines.map { $0 + "\n" }.joined())
    #expect(outcome.errorText == "" && outcome.status == 0)
    #expect(try copy.read() == logo)
  }

  @Test("prefers the user's language", .timeLimit(.minutes(1)))
  func userLanguage() throws {
    let fixture = try GreeterFixture()
    var command = fixture.command(GreeterFixture.bundle)
    command.environment["LC_ALL"] = "fr_CA.UTF-8"
    #expect(try command.check().outputText.hasPrefix("Bienvenue dans Greeter"))
  }

  @Test("a substitution overrides one string; the others stay", .timeLimit(.minutes(1)))
  func overriddenKey() throws {
    let fixture = try GreeterFixture()
    try fixture.override("fr.lproj/Localizable.strings", #""hello" = "Salut, %@";"#)
    let french = try fixture.run("--language", "fr", "--url", "greeter://greet/Ada/2")
    let lines = french.outputText.split(separator: "\n")
    #expect(lines.first == "Bienvenue dans Greeter\u{A0}!")
    #expect(lines.dropFirst(2) == ["Salut, Ada", "Salut, Ada", "2 salutations pour Ada"])
    let english = try fixture.run("--language", "en", "--url", "greeter://greet/Ada/1")
    #expect(english.outputText.contains("Hello, Ada!\n"))
  }

  @Test("a substitution adds a language, which need not be complete", .timeLimit(.minutes(1)))
  func addedLanguage() throws {
    let fixture = try GreeterFixture()
    try fixture.override("it.lproj/Localizable.strings", #""hello" = "Ciao, %@!";"#)
    let outcome = try fixture.run("--language", "it", "--url", "greeter://greet/Ada/1")
    let lines = outcome.outputText.split(separator: "\n")
    #expect(lines.first == "Welcome to Greeter!")
    #expect(lines.dropFirst(2) == ["Ciao, Ada!", "1 greeting for Ada"])
  }

  @Test("a substitution, also an archive, has another name and another logo", .timeLimit(.minutes(1)))
  func overriddenLogo() throws {
    let fixture = try GreeterFixture()
    let logo = #"<svg xmlns="http://www.w3.org/2000/svg"/>"#
    try fixture.override("logo.svg", logo)
    let copy = fixture.folder / "copy.svg"
    let outcome = try fixture.run("--logo", copy)
    #expect(outcome.outputText == "Welcome to Greeter!\nLogo: image/svg+xml, \(logo.utf8.count) bytes\n")
    #expect(try copy.readText() == logo)

    var zip = ZipBuilder()
    let plist = "<plist><dict><key>CFBundleName</key><string>Usher</string></dict></plist>"
    zip.add(ZipBuilder.Entry("Info.plist", [UInt8](plist.utf8), .deflated))
    zip.add(ZipBuilder.Entry("logo.svg", [UInt8]((logo + "\n").utf8), .stored))
    let archive = fixture.folder / "usher.zip"
    try archive.write(zip.bytes)
    let usher = try fixture.command(GreeterFixture.bundle, archive, fixture.substitution).check()
    #expect(usher.outputText == "Welcome to Usher!\nLogo: image/svg+xml, \(logo.utf8.count + 1) bytes\n")
  }

  private static let failures: [([ByteString], Int, String)] = [
    ([], 2, "either BUNDLE or --mount is needed"),
    (["BUNDLE", "--mount", "/tmp"], 2, "either BUNDLE or --mount is needed"),
    (["BUNDLE", "--help"], 2, "--help: no such option, or its value is missing"),
    (["BUNDLE", "--size", "1"], 2, "--size: no such option"),
    (["BUNDLE", "--language", "it"], 1, "no localization 'it'; there are: en, fr"),
    (["BUNDLE", "--url", "x:greet/Ada"], 1, "x:greet/Ada: this is not greeter://greet/NAME/TIMES"),
    (["BUNDLE", "--url", "x:greet/Ada/-1"], 1, "-1 greetings; from 0 to 100 are possible"),
    (["BUNDLE", "--logo", "/nothing/logo"], 1, "/nothing/logo cannot be written"),
    (["/nothing"], 1, "/nothing: No such file or directory"),
    (["BUNDLE", "/proc/version"], 1, "/proc/version: not a zip archive"),
    (["--mount", "/proc"], 1, "/proc: no bundlefs is mounted there"),
  ]

  @Test("names the cause of an error", .timeLimit(.minutes(1)), arguments: failures)
  func errors(arguments: [ByteString], status: Int, message: String) throws {
    var command = try GreeterFixture().command()
    command.arguments += arguments.map { $0 == "BUNDLE" ? GreeterFixture.bundle : $0 }
    let outcome = try command.run()
    #expect(outcome.status == status)
    #expect(outcome.errorText.hasPrefix("greeter: \(message)"), "\(outcome.errorText)")
  }

  @Test("needs the logo", .timeLimit(.minutes(1)))
  func missingLogo() throws {
    let fixture = try GreeterFixture()
    let outcome = try fixture.command(fixture.substitution).run()
    #expect(outcome.status == 1)
    #expect(outcome.errorText == "greeter: rsrc:///logo.svg: No such file or directory\n")
  }
}
