import Testing

@testable import Routing

/// Compatibility with CCFURLResponder: its documentation, sample and tests.
@Suite struct CompatibilityTests {
  private func match(_ url: String, _ patterns: String...) throws -> RouteMatch? {
    try table(patterns.enumerated().map { ("N\($0)", $1) }).match(RouteURL(bytes(url)))
  }

  @Test("the animal pattern, with and without a leading slash", arguments: ["/", ""])
  func animals(lead: String) throws {
    let found = try match(
      "ccfurlresponder://animal/platypus/8.0",
      lead + "l:(animal)MyAnimalDomainKey/s:MyAnimalNameKey/f:MyAverageWeightKey")
    #expect(
      found?.shown
        == #"{"MyAnimalDomainKey":"animal","MyAnimalNameKey":"platypus","MyAverageWeightKey":8.0}"#)
  }

  @Test("the color pattern, with and without a leading slash", arguments: ["/", ""])
  func colors(lead: String) throws {
    let found = try match(
      "ccfurlresponder://Pure%20red/1.0/0.0/0.0",
      lead + "s:MyColorNameKey/f:MyRedKey/f:MyGreenKey/f:MyBlueKey")
    #expect(found?["MyColorNameKey"] == .text("Pure red"))
    #expect(found?["MyRedKey"] == .number(1))
    #expect(found?["MyGreenKey"] == .number(0) && found?["MyBlueKey"] == .number(0))
  }

  private static let sample: [(name: String, pattern: String)] = [
    (
      "CCFAnimalNotification",
      "l:(animal)CCFAnimalDomain/s:CCFAnimal/f:CCFAverageWeight/i:CCFAverageLifeExpectancy"
    ),
    ("CCFColorNotification", "l:(color)CCFColorDomain/s:CCFEnglishWord/s:CCFFrenchWord"),
  ]

  @Test(
    "the links of the sample page",
    arguments: [
      (
        "animal/platypus/3.1/4",
        #"CCFAnimalNotification {"CCFAnimal":"platypus","CCFAnimalDomain":"animal","#
          + #""CCFAverageLifeExpectancy":4,"CCFAverageWeight":3.1}"#
      ),
      (
        "animal/spiny%20anteater/8/50",
        #"CCFAnimalNotification {"CCFAnimal":"spiny anteater","CCFAnimalDomain":"animal","#
          + #""CCFAverageLifeExpectancy":50,"CCFAverageWeight":8.0}"#
      ),
      (
        "color/red/rouge",
        #"CCFColorNotification {"CCFColorDomain":"color","CCFEnglishWord":"red","CCFFrenchWord":"rouge"}"#
      ),
    ])
  func sample(link: String, expected: String) throws {
    let found = try #require(try table(Self.sample).match(RouteURL(bytes("ccfurlresponder://\(link)"))))
    #expect("\(found.name) \(found.shown)" == expected)
  }

  @Test("open matches no route")
  func open() throws {
    let url = try RouteURL(bytes("ccfurlresponder://open"))
    #expect(try table(Self.sample).match(url) == nil)
    #expect(try RouteTable().match(url) == nil)
  }

  @Test("two patterns match their own URLs, and none after a reset")
  func distinct() throws {
    var table = try table([
      ("Animal", "l:(animal)CCFAnimal/s:CCFAnimalName"),
      ("Widget", "s:CCFWidget/i:CCFOrderQuantity/f:CCFWeight"),
    ])
    let cases = [
      ("animal/dog", #"Animal {"CCFAnimal":"animal","CCFAnimalName":"dog"}"#),
      (
        "thneed/10000/3.14159", #"Widget {"CCFOrderQuantity":10000,"CCFWeight":3.14159,"CCFWidget":"thneed"}"#
      ),
      ("thneed/98/2.56", #"Widget {"CCFOrderQuantity":98,"CCFWeight":2.56,"CCFWidget":"thneed"}"#),
    ]
    for (path, expected) in cases {
      let found = try table.match(RouteURL(bytes("ccfurlresponder://\(path)")))
      #expect(found.map { "\($0.name) \($0.shown)" } == expected)
    }
    table.removeAll()
    for (path, _) in cases { #expect(try table.match(RouteURL(bytes("ccfurlresponder://\(path)"))) == nil) }
  }

  @Test(
    "CCFURLResponder's false matches",
    arguments: [
      ("l:(animal)A/s:B", "ccfurlresponder://color/dog"), ("i:A", "ccfurlresponder://abc12"),
      ("i:A", "ccfurlresponder://12abc"), ("f:A", "ccfurlresponder://1.5kg"),
      ("s:A", "ccfurlresponder://a/b"),
    ])
  func fixed(pattern: String, url: String) throws {
    #expect(try match(url, pattern) == nil)
  }
}
