import Posix
import TestSupport
import Testing

/// The example program on a mount.
@Suite(.serialized) struct MountedGreeterTests {
  private func checkEnd(_ greeter: Child) throws {
    let outcome = try greeter.wait(timeout: 20)
    #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
  }

  @Test("greets by URLs from a shell until it is unmounted", .timeLimit(.minutes(1)))
  func echoed() throws {
    let fixture = try GreeterFixture()
    var greeter: Child?
    try fixture.withGreeterMount { _ in
      let started = try fixture.start("--url", "greeter://greet/Ada/2")
      greeter = started
      try fixture.waitFor("2 greetings for Ada", of: started)
      try fixture.echo("greeter://greet/Grace/1")
      try fixture.waitFor("1 greeting for Grace", of: started)
      #expect(
        started.outputText.split(separator: "\n").dropFirst(2) == [
          "Waiting for greetings", "Hello, Ada!", "Hello, Ada!", "2 greetings for Ada", "Hello, Grace!",
          "1 greeting for Grace",
        ])
    }
    try checkEnd(try #require(greeter))
  }

  @Test("has the mount's language, or its own", .timeLimit(.minutes(1)))
  func languages() throws {
    let fixture = try GreeterFixture()
    var greeters: [Child] = []
    try fixture.withGreeterMount(["languages=fr"]) { _ in
      let waiting = "En attente de salutations"
      // The second finds the route, which the first one has registered.
      greeters = [try fixture.start(waiting: waiting), try fixture.start("--language", "en")]
      try fixture.echo("greeter://greet/Ada/2")
      try fixture.waitFor("2 salutations pour Ada", of: greeters[0])
      try fixture.waitFor("2 greetings for Ada", of: greeters[1])
      #expect(greeters[0].outputText.hasPrefix("Bienvenue dans Greeter\u{A0}!\nLogo\u{A0}: image/svg+xml, "))
    }
    for greeter in greeters { try checkEnd(greeter) }
  }

  @Test("shows an overridden string and logo while it runs", .timeLimit(.minutes(1)))
  func overrides() throws {
    let fixture = try GreeterFixture()
    let size = try (GreeterFixture.bundle / "logo.svg").read().count
    var greeter: Child?
    try fixture.withGreeterMount { _ in
      let started = try fixture.start("--logo", fixture.folder / "copy.svg")
      greeter = started
      #expect(try (fixture.folder / "copy.svg").read().count == size)
      try fixture.override("logo.svg", "<svg/>")
      try fixture.waitFor("Logo: image/svg+xml, 6 bytes", of: started)
      try fixture.override(
        "en.lproj/Localizable.strings", #""hello" = "Hi %@"; "logo" = "%2$d bytes of %1$@";"#)
      try fixture.echo("greeter://greet/Ada/1")
      try fixture.waitFor("1 greeting for Ada", of: started)
      #expect(started.outputText.hasSuffix("Hi Ada\n1 greeting for Ada\n"))
      try (fixture.substitution / "logo.svg").remove()
      try fixture.waitFor("\(size) bytes of image/svg+xml", of: started)
    }
    try checkEnd(try #require(greeter))
  }

  @Test("a refused greeting does not end it; an unmatched URL at the start does", .timeLimit(.minutes(1)))
  func refusals() throws {
    let fixture = try GreeterFixture()
    try fixture.withGreeterMount { _ in
      let greeter = try fixture.start()
      try fixture.echo("greeter://greet/Ada/101")
      #expect(eventually(within: 20) { greeter.errorText != "" })
      #expect(greeter.errorText == "greeter: 101 greetings; from 0 to 100 are possible\n")
      try fixture.echo("greeter://greet/Ada/1")
      try fixture.waitFor("1 greeting for Ada", of: greeter)
      try greeter.kill()

      let refused = try fixture.start("--url", "greeter://nothing")
      let outcome = try refused.wait(timeout: 20)
      #expect(outcome.status == 1)
      #expect(outcome.errorText == "greeter: no route matches greeter://nothing\n")
    }
  }
}
