import TestSupport
import Testing

@testable import Bundles

@Suite struct ImageVariantTests {
  @Test("all layers are searched for a variant before the next variant", arguments: questions)
  func lookup(question: Case) throws { #expect(try question.result() == question.expected) }

  static let questions = [
    // A more specific variant below wins against a less specific one above.
    Case(["0 i@2x.png", "1 i@2x~ipad.png"], "i.png", "1 i@2x~ipad.png", scale: 2, idiom: .pad),
    Case(["0 i@2x~ipad.png", "1 i@2x~ipad.png"], "i.png", "0 i@2x~ipad.png", scale: 2, idiom: .pad),
    Case(["0 i@2x~ipad.png", "1 i@2x.png"], "i.png", "0 i@2x~ipad.png", scale: 2, idiom: .pad),
    Case(["0 i@2x~iphone.png", "1 i@2x.png"], "i.png", "1 i@2x.png", scale: 2, idiom: .pad),
    Case(["0 i@2x~iphone.png", "1 i@2x.png"], "i.png", "0 i@2x~iphone.png", scale: 2, idiom: .phone),
    Case(["0 i.png", "1 i@2x.png"], "i.png", "1 i@2x.png", scale: 2),
    Case(["0 i.png", "1 i@3x.png"], "i.png", "0 i.png", scale: 2),
    Case(["0 i.png", "1 i@3x.png"], "i.png", "1 i@3x.png", scale: 3),
    Case(["0 i.png", "1 i@2x.png"], "i.png", "1 i@2x.png", scale: 3),
    Case(["0 i@2x.png", "1 i@3x.png"], "i.png", "1 i@3x.png", scale: 4),
    Case(["0 i@2x.png", "1 i.png"], "i.png", "1 i.png", idiom: .pad),
    Case(["0 i.png", "1 i~ipad.png"], "i.png", "1 i~ipad.png", idiom: .pad),
    Case(["0 i.png", "1 i~ipad.png"], "i.png", "0 i.png", scale: 1),
    Case(["1 i~iphone.png", "1 i.png"], "i.png", "1 i~iphone.png", scale: 1),
    Case(["1 i_2only_@2x.png", "1 i.png"], "i.png", "1 i_2only_@2x.png", scale: 2),
    Case(["0 i_2only_@2x~ipad.png", "1 i@2x.png"], "i.png", "0 i_2only_@2x~ipad.png", scale: 2, idiom: .pad),
    Case(["1 i_1only_.png"], "i.png", "1 i_1only_.png", scale: 2),
    Case(["1 i@1x.png", "0 i_1only_.png"], "i.png", "1 i@1x.png", scale: 1),
    // Localizations inside each layer.
    Case(
      ["0 fr.lproj/i@2x.png", "1 i@2x.png"], "i.png", "0 fr.lproj/i@2x.png fr", languages: "fr", scale: 2),
    Case(["0 i.png", "1 fr.lproj/i@2x.png"], "i.png", "1 fr.lproj/i@2x.png fr", languages: "fr", scale: 2),
    Case(["1 i@2x.png", "1 fr.lproj/i@2x.png"], "i.png", "1 i@2x.png", languages: "fr", scale: 2),
    Case(["1 i.png", "1 fr.lproj/i@2x.png"], "i.png", "1 i.png", languages: "en", scale: 2),
    Case(["1 D/i@2x.png", "1 D/i.png"], "D/i.png", "1 D/i@2x.png", scale: 2),
    // No extension means png, then nothing.
    Case(["1 i.png"], "i", "1 i.png", scale: 1),
    Case(["1 i@2x.png", "1 i"], "i", "1 i@2x.png", scale: 2),
    Case(["1 i"], "i", "1 i", scale: 2),
    Case(["1 i~ipad", "1 i"], "i", "1 i~ipad", idiom: .pad),
    Case(["1 i"], "i.png", "1 i", scale: 2),
    Case(["1 i.png"], "i", nil),
    Case(["1 i@2x.png"], "i", nil),
    // Other extensions.
    Case(["1 i@2x.jpg", "1 i.jpg"], "i.jpg", "1 i@2x.jpg", scale: 2),
    Case(["1 i@2x.PNG", "1 i.PNG"], "i.PNG", "1 i@2x.PNG", scale: 2),
    Case(["1 i@2x.png"], "i.jpg", nil, scale: 2),
    Case(["1 a.b@2x.png", "1 a.b.png"], "a.b.png", "1 a.b@2x.png", scale: 2),
    Case(["1 a@2x.txt", "1 a.txt"], "a.txt", "1 a.txt", scale: 2),
    Case(["1 a.b", "1 a.b@2x.png"], "a.b", "1 a.b", scale: 2),
    Case(["1 .i", "1 .i@2x.png"], ".i", "1 .i@2x.png", scale: 2),
    Case(["1 i.", "1 i.@2x.png"], "i.", "1 i.@2x.png", scale: 2),
    // The exact name is found, too.
    Case(["1 i@2x.png", "1 i.png"], "i@2x.png", "1 i@2x.png", scale: 2),
    Case(["1 i@2x.png", "1 i.png"], "i@2x.png", "1 i@2x.png"),
    // Hidden variants.
    Case(["0 .wh.i@2x.png", "1 i@2x.png", "1 i.png"], "i.png", "1 i.png", scale: 2),
    Case(["0 i@2x.png -> x.png", "1 i@2x.png", "1 x.png"], "i.png", "1 x.png", scale: 2),
  ]

  @Test("the candidates are in UIImage's order")
  func order() {
    func candidates(_ name: String, _ scale: Int?, _ idiom: ResourceOptions.Idiom?) -> [String] {
      let options = ResourceOptions(scale: scale, idiom: idiom)
      return ImageVariants.candidates(for: Array(name.utf8), options: options).map { text([$0]) }
    }
    #expect(
      candidates("i.gif", 3, .pad) == [
        "i@3x~ipad.gif", "i_3only_@3x~ipad.gif", "i@3x.gif", "i_3only_@3x.gif",
        "i@2x~ipad.gif", "i_2only_@2x~ipad.gif", "i@2x.gif", "i_2only_@2x.gif", "i~ipad.gif", "i.gif",
        "i@1x~ipad.gif", "i_1only_~ipad.gif", "i@1x.gif", "i_1only_.gif", "i~ipad", "i",
      ])
    #expect(
      candidates("i", 1, .phone) == [
        "i~iphone.png", "i.png", "i@1x~iphone.png", "i_1only_~iphone.png", "i@1x.png", "i_1only_.png",
        "i~iphone", "i",
      ])
    #expect(candidates("i", nil, .phone) == candidates("i", 1, nil))
    #expect(candidates("i.png", nil, nil) == ["i.png"])
    #expect(candidates("i.txt", 2, .pad) == ["i.txt"])
  }
}
