import Foundation
import Posix
import TestSupport
import Testing

/// The example program.
@Suite(.serialized) struct ExampleTests {
  @Test("loads a resource from a mount and receives a notification", .timeLimit(.minutes(1)))
  func example() throws {
    let fixture = try BundleFixture()
    try fixture.make("greeting.txt", "hello")
    try fixture.override("greeting.txt", "good day")
    let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.substitution])
    try withMount(setup) { mount in
      try mount.writeControl("route Animal s:Name/f:Weight/i:Life\n")
      let program = try Binary.besideTheTests("resourceexample")
      let example = try Child(Command([program, mount.point, "rsrc:///greeting.txt", "Animal"]))
      #expect(eventually(within: 30) { example.outputText.hasSuffix("listening\n") }, "\(example.errorText)")
      try mount.writeControl("x:platypus/8/4\n")
      let outcome = try example.wait(timeout: 20)
      #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
      let lines = outcome.outputText.split(separator: "\n")
      #expect(
        lines == [
          "text/plain utf-8 8 bytes", "good day", "listening",
          "Animal: Life=4 (Int), Name=platypus (String), Weight=8.0 (Double)",
        ])
    }
  }
}
