import BundleResources
import Foundation
import Posix
import TestSupport
import Testing

/// Images with their scales, and asset catalogs that are not compiled.
@Suite(.serialized) struct AssetTests {
  @Test("an image has the scale of its file, and lower ones stand in", arguments: BundleForm.allCases)
  func scales(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    let names = ["a@3x.png", "a@2x.png", "a.png", "b@2x.png", "b.png", "c.png", "d@2x~ipad.png", "e.jpg"]
    for name in names { try fixture.make(ByteString(name), name) }
    try fixture.override("c@2x.png", "c")
    for (scale, expected) in [
      (3, [3, 2, 2, 2, 1]), (2, [2, 2, 2, 2, 1]), (1, [1, 1, 1, nil, 1]), (nil, [1, 1, 1, nil, 1]),
    ] as [(Int?, [Int?])] {
      let options = LookupOptions(languages: ["en"], scale: scale, idiom: .pad)
      try fixture.withBundle(form, options) { bundle in
        #expect(["a", "b.png", "c", "d", "e.jpg"].map { bundle.image(forResource: $0)?.scale } == expected)
        #expect(bundle.image(forResource: "none") == nil)
        let image = try #require(bundle.image(forResource: "a"))
        #expect(bundle.urlForImageResource("a") == image.url)
        #expect(image.url.lastPathComponent == ["a.png", "a@2x.png", "a@3x.png"][(scale ?? 1) - 1])
      }
    }
  }

  private func catalog() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.make(
      "Assets.xcassets/logo.imageset/Contents.json",
      """
      {"images":[{"filename":"l1.png","idiom":"universal","scale":"1x"},{"filename":"l2.png","idiom":"universal","scale":"2x"},
      {"filename":"pad.png","idiom":"ipad","scale":"2x"},{"idiom":"universal","scale":"3x"},
      {"filename":"dark.png","idiom":"universal","scale":"2x","appearances":[{"appearance":"luminosity","value":"dark"}]}],
      "info":{"version":1}}
      """)
    for name in ["l1", "l1@2x", "l2", "pad", "dark"] {
      try fixture.make(ByteString("Assets.xcassets/logo.imageset/\(name).png"), name)
    }
    try fixture.make(
      "Assets.xcassets/Group/vector.imageset/Contents.json",
      #"{"images":[{"filename":"v.pdf","idiom":"universal"}]}"#)
    try fixture.make("Assets.xcassets/Group/vector.imageset/v.pdf", "v")
    try fixture.make(
      "Assets.xcassets/Brand/Contents.json", #"{"properties":{"provides-namespace":true}}"#)
    try fixture.make(
      "Assets.xcassets/Brand/accent.colorset/Contents.json",
      """
      {"colors":[{"color":{"color-space":"display-p3","components":{"red":"0x80","green":"255","blue":"0.250","alpha":"0.5"}},
      "idiom":"universal"},{"color":{"color-space":"srgb","components":{"white":"1.0","alpha":"1.000"}},"idiom":"universal",
      "appearances":[{"appearance":"luminosity","value":"dark"}]}]}
      """)
    try fixture.make(
      "Other.xcassets/words.dataset/Contents.json",
      #"{"data":[{"filename":"w.txt","idiom":"universal"}]}"#)
    try fixture.make("Other.xcassets/words.dataset/w.txt", "main")
    return fixture
  }

  @Test("images, colours and data of catalogs", arguments: BundleForm.allCases)
  func catalogs(form: BundleForm) throws {
    let fixture = try catalog()
    try fixture.override("Other.xcassets/words.dataset/w.txt", "override")
    for (scale, idiom, file, found) in [
      (1, nil, "l1.png", 1), (2, nil, "l2.png", 2), (3, nil, "l2.png", 2), (2, .pad, "pad.png", 2),
    ] as [(Int, LookupOptions.Idiom?, String, Int)] {
      let options = LookupOptions(languages: ["en"], scale: scale, idiom: idiom)
      try fixture.withBundle(form, options) { bundle in
        let image = try #require(bundle.image(forResource: "logo"))
        #expect(image.url.lastPathComponent == file && image.scale == found)
        #expect(bundle.image(forResource: "vector")?.url.lastPathComponent == "v.pdf")
        #expect(
          bundle.image(forResource: "Group/vector") == nil && bundle.image(forResource: "accent") == nil)
      }
    }
    try fixture.withBundle(form) { bundle in
      let color = try #require(bundle.color(named: "Brand/accent"))
      let expected = ColorResource(colorSpace: .displayP3, red: 128 / 255, green: 1, blue: 0.25, alpha: 0.5)
      #expect(color == expected && bundle.color(named: "accent") == nil)
      #expect(bundle.color(named: "Brand/accent", isDark: true)?.red == 1)
      let url = try #require(bundle.url(forDataAsset: "words"))
      #expect(url.lastPathComponent == "w.txt" && bundle.url(forDataAsset: "none") == nil)
      if url.isFileURL { #expect(try String(contentsOf: url, encoding: .utf8) == "override") }
    }
  }

  @Test("a set of a substitution counts, and malformed ones do not")
  func overridden() throws {
    let fixture = try catalog()
    try fixture.override(
      "Mine.xcassets/logo.imageset/Contents.json", #"{"images":[{"filename":"x.png","idiom":"universal"}]}"#)
    try fixture.override("Mine.xcassets/logo.imageset/x.png", "x")
    try fixture.make("Bad.xcassets/a.colorset/Contents.json", "{\"colors\":[{\"color\":1}]}")
    try fixture.make("Bad.xcassets/b.colorset/Contents.json", "{")
    try fixture.make(
      "Bad.xcassets/c.dataset/Contents.json", #"{"data":[{"filename":"../a.colorset/Contents.json"}]}"#)
    try fixture.make(
      "Bad.xcassets/d.imageset/Contents.json",
      #"{"images":[{"filename":"none.png","scale":"99999999999999999999x"}]}"#)
    try fixture.withBundle(.folders) { bundle in
      #expect(bundle.image(forResource: "logo")?.url.lastPathComponent == "x.png")
      #expect(bundle.color(named: "a") == nil && bundle.color(named: "b") == nil)
      #expect(bundle.color(named: "") == nil)
      #expect(bundle.url(forDataAsset: "c") == nil && bundle.image(forResource: "d") == nil)
    }
  }
}
