import Posix
import TestSupport
import Testing

/// CCFURLResponder's sample and tests, reproduced by writes to a control file.
extension MountTests {
  @Suite struct CCFURLResponderTests {
    /// Registers patterns, posts a URL from a shell and returns the last result beginning with its outcome.
    private func outcome(of url: String, _ patterns: [String]) throws -> String {
      let fixture = try Fixture(isFilled: false)
      return try withMount(fixture.setup) { mount in
        for (number, pattern) in patterns.enumerated() {
          try mount.writeControl("route N\(number) \(pattern)\n")
        }
        let script = "echo '\(url)' > \"$R\"; tail -n 1 \"$R\" | sed 's/.*\"outcome\"/\"outcome\"/'"
        return try mount.bash(script).outputText
      }
    }

    private static let animals =
      "l:(animal)CCFAnimalDomain/s:CCFAnimal/f:CCFAverageWeight/i:CCFAverageLifeExpectancy"
    private static let colors = "l:(color)CCFColorDomain/s:CCFEnglishWord/s:CCFFrenchWord"

    @Test(
      "the sample's examples and links",
      .timeLimit(.minutes(1)),
      arguments: [
        (
          "animal/platypus/8.0", ["/l:(animal)MyDomain/s:MyName/f:MyWeight"],
          #""N0","userInfo":{"MyDomain":"animal","MyName":"platypus","MyWeight":8.0}}"#
        ),
        (
          "Pure%20red/1.0/0.0/0.0", ["s:MyName/f:MyRed/f:MyGreen/f:MyBlue"],
          #""N0","userInfo":{"MyBlue":0.0,"MyGreen":0.0,"MyName":"Pure red","MyRed":1.0}}"#
        ),
        (
          "animal/platypus/3.1/4", [animals, colors],
          #""N0","userInfo":{"CCFAnimal":"platypus","CCFAnimalDomain":"animal","#
            + #""CCFAverageLifeExpectancy":4,"CCFAverageWeight":3.1}}"#
        ),
        (
          "animal/spiny%20anteater/8/50", [animals, colors],
          #""N0","userInfo":{"CCFAnimal":"spiny anteater","CCFAnimalDomain":"animal","#
            + #""CCFAverageLifeExpectancy":50,"CCFAverageWeight":8.0}}"#
        ),
        (
          "color/red/rouge", [animals, colors],
          #""N1","userInfo":{"CCFColorDomain":"color","CCFEnglishWord":"red","CCFFrenchWord":"rouge"}}"#
        ),
        (
          "animal/dog",
          ["l:(animal)CCFAnimal/s:CCFAnimalName", "s:CCFWidget/i:CCFOrderQuantity/f:CCFWeight"],
          #""N0","userInfo":{"CCFAnimal":"animal","CCFAnimalName":"dog"}}"#
        ),
        (
          "thneed/10000/3.14159",
          ["l:(animal)CCFAnimal/s:CCFAnimalName", "s:CCFWidget/i:CCFOrderQuantity/f:CCFWeight"],
          #""N1","userInfo":{"CCFOrderQuantity":10000,"CCFWeight":3.14159,"CCFWidget":"thneed"}}"#
        ),
      ])
    func posted(url: String, patterns: [String], expected: String) throws {
      let found = try outcome(of: "ccfurlresponder://\(url)", patterns)
      let result =
        #""outcome":"posted","notification":\#(expected.dropLast()),"scheme":"ccfurlresponder","listeners":0}"#
      #expect(found == result + "\n")
    }

    @Test("without a pattern, or after a reset, there is no notification", .timeLimit(.minutes(1)))
    func noNotification() throws {
      for patterns in [[], [Self.animals, Self.colors]] {
        let found = try outcome(of: "ccfurlresponder://open", patterns)
        #expect(found.hasPrefix(#""outcome":"rejected","errno":"ENOENT""#), "\(found)")
      }
      let fixture = try Fixture(isFilled: false)
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route A \(Self.animals)\nreset\n")
        try expectErrno(.noSuchFileOrDirectory) {
          try mount.writeControl("ccfurlresponder://animal/platypus/3.1/4\n")
        }
      }
    }

    @Test("the pattern registered first wins", .timeLimit(.minutes(1)))
    func firstWins() throws {
      let found = try outcome(of: "x://thneed/98", ["i:A/s:B", "s:A/i:B", "s:A/s:B"])
      #expect(found.contains(#""notification":"N1""#))
      let other = try outcome(of: "x://98/98", ["i:A/s:B", "s:A/i:B", "s:A/s:B"])
      #expect(other.contains(#""notification":"N0""#))
    }
  }
}
