import Posix
import TestSupport
import Testing

@testable import Bundles

@Suite struct ResourceListTests {
  private static let entries = [
    "1 Resources/a.png", "1 Resources/b.PNG", "1 Resources/c.tar.gz", "1 Resources/fr.lproj/a.png",
    "1 Resources/fr.lproj/D/e.png", "1 Resources/en.lproj/f.png", "1 Resources/Base.lproj/g.png",
    "1 Resources/D/h.png", "1 Resources/.png", "1 Resources/noext", "1 Resources/z.png/",
    "1 Resources/gone.png", "0 Resources/a.png", "0 Resources/.wh.gone.png", "0 Resources/new.png",
    "0 Resources/fr.lproj/i.png", "0 Resources/de.lproj/j.png", "1 Resources/l.png -> a.png",
    "0 Resources/z.png/inside", "1 Resources/k.lproj", "1 Resources/m.lproj -> fr.lproj",
    "1 Resources/n.lproj -> nowhere", "1 Resources/gone.lproj/a", "0 Resources/.wh.gone.lproj",
  ]

  private static func list(
    type: String?, in folder: String = "", languages: String = "fr", only localization: String? = nil
  ) throws -> [String] {
    let fixture = try LookupFixture(entries)
    let options = ResourceOptions(languages: names(languages, ":"))
    let lookup = ResourceLookup(stack: fixture.stack, options: options)
    let listed = try lookup.list(
      type: type.map { Array($0.utf8) }, in: names(folder, "/"),
      localization: localization.map { Array($0.utf8) })
    return listed.map { resource in
      let localization = resource.localization.map { " " + text([$0]) } ?? ""
      return "\(resource.layer) \(text(Array(resource.path.dropFirst())))\(localization)"
    }
  }

  @Test("a merged list has each path once, sorted")
  func merged() throws {
    #expect(
      try Self.list(type: "png") == [
        "1 .png", "1 Base.lproj/g.png Base", "0 a.png", "1 en.lproj/f.png en", "1 fr.lproj/a.png fr",
        "0 fr.lproj/i.png fr",
        "1 l.png", "0 new.png", "0 z.png",
      ])
    #expect(try Self.list(type: "png", only: "fr").contains("1 Base.lproj/g.png Base") == false)
    #expect(try Self.list(type: "png", only: "de").filter { $0.contains("lproj") } == ["0 de.lproj/j.png de"])
    #expect(try Self.list(type: "tar.gz") == ["1 c.tar.gz"])
    #expect(try Self.list(type: "gz") == ["1 c.tar.gz"])
    #expect(try Self.list(type: "PNG") == ["1 b.PNG"])
    #expect(try Self.list(type: "jpg") == [])
    #expect(try Self.list(type: "png", in: "D") == ["1 D/h.png", "1 fr.lproj/D/e.png fr"])
    #expect(try Self.list(type: "png", in: "D/..") == [])
    #expect(try Self.list(type: "png", in: "nowhere") == [])
    // The same folder under two names of a language is listed once.
    #expect(try Self.list(type: "png", languages: "fr:fr-CA") == Self.list(type: "png", languages: "fr-CA"))
  }

  @Test("all types")
  func all() throws {
    let all = try Self.list(type: nil)
    #expect(try all == Self.list(type: ""))
    #expect(all.contains("1 noext") && all.contains("1 D") && all.contains("0 fr.lproj"))
    #expect(!all.contains { $0.contains("gone") || $0.contains(".wh.") })
  }

  @Test("the localizations of all layers")
  func localizations() throws {
    let fixture = try LookupFixture(Self.entries)
    let names = try ResourceLookup(stack: fixture.stack).localizations()
    #expect(names.map { text([$0]) } == ["Base", "de", "en", "fr", "m"])
    #expect(try ResourceLookup(stack: LookupFixture([]).stack).localizations() == [])
  }

  @Test("a listed resource, or one with priority, is found")
  func found() throws {
    let fixture = try LookupFixture(Self.entries)
    let lookup = ResourceLookup(stack: fixture.stack, options: ResourceOptions(languages: names("fr", ":")))
    for resource in try lookup.list(type: Array("png".utf8)) {
      let name = try #require(resource.path.last)
      let found = try #require(try lookup.find([name]))
      // If they differ, the result precedes the listed resource in search order.
      #expect(found.path == resource.path || found.layer <= resource.layer || resource.kind == .symbolicLink)
    }
  }
}
