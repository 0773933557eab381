import Layers
import Posix
import Routing
import Testing

@testable import bundlefs

/// What the daemon tells of the layers, what is asked of it, and what the command prints.
@Suite struct MountedLayersTests {
  private func mounted(_ json: String) throws -> MountedLayers {
    let status = try #require(JSONValue(Array(json.utf8)))
    return try #require(MountedLayers(status))
  }

  private static let status = #"""
    {"layers":[
      {"path":"/l/a","encodedPath":"/l/%61%FF","kind":"directory","reason":"no watches","unresponsive":40,"archive":null},
      {"path":"/l/b.zip","encodedPath":"/l/b.zip","kind":"archive","archive":{"note":"it is damaged",
        "skipped":[{"reason":"absolute","count":2,"names":[]}],"unreadable":[{"reason":"method 98","count":1}]}},
      {"path":"/m/app","encodedPath":"/m/app","kind":"directory","absent":true,"reason":"it is gone","archive":null}]}
    """#

  private static let writable = #"""
    {"layers":[
      {"path":"/up\u001b","encodedPath":"/up%1B","place":null,"kind":"directory","writable":true},
      {"path":"/ma in","encodedPath":"/ma%20in","place":null,"kind":"directory","writable":false}]}
    """#

  @Test("reads paths, kinds and problems")
  func reading() throws {
    let mounted = try mounted(Self.status)
    #expect(
      mounted.layers.map(\.path) == [
        Array("/l/a".utf8) + [0xFF], Array("/l/b.zip".utf8), Array("/m/app".utf8),
      ])
    #expect(mounted.layers.map(\.kind) == [.directory, .archive, .directory] && !mounted.isWritable)
    #expect(
      mounted.layers.map(\.problems) == [
        ["cached for 1 s only: no watches", "does not answer, since 40 s"],
        ["last readable content shown: it is damaged", "skipped 2 (absolute)", "unreadable 1 (method 98)"],
        ["it is gone"],
      ])
    #expect(try self.mounted(Self.writable).isWritable)
    for broken in [#"{"layers":[]}"#, #"{"layers":[{"path":"/a"}]}"#, "{}"] {
      let status = try #require(JSONValue(Array(broken.utf8)))
      #expect(MountedLayers(status) == nil, "\(broken)")
    }
  }

  @Test("prints a line for each layer")
  func text() throws {
    var output = LayersOutput(mounted: try mounted(Self.status), counts: nil)
    #expect(
      output.text == """
        1     directory  /l/a  (cached for 1 s only: no watches; does not answer, since 40 s)
        2     archive    /l/b.zip  (last readable content shown: it is damaged; skipped 2 (absolute); unreadable 1 (method 98))
        MAIN  directory  /m/app  (it is gone)
        """)
    output = LayersOutput(mounted: try mounted(Self.writable), counts: try counts)
    #expect(
      output.text == """
        1     directory  no name, hides 2  /up\\x1B  (writable)
        MAIN  directory  3 names           /ma in
        """)
  }

  @Test("the JSON has what programs need")
  func json() throws {
    let output = LayersOutput(mounted: try mounted(Self.writable), counts: try counts)
    #expect(
      output.json == #"""
        [
          {"role":"writable","path":"/up\u001b","encodedPath":"/up%1B","place":null,"kind":"directory","problems":[],"names":0,"hides":2},
          {"role":"MAIN","path":"/ma in","encodedPath":"/ma%20in","place":null,"kind":"directory","problems":[],"names":3,"hides":0}
        ]
        """#)
    #expect(!LayersOutput(mounted: try mounted(Self.writable), counts: nil).json.contains("names"))
  }

  /// Of two layers.
  private var counts: NameCounts {
    get throws {
      // As the daemon sends them: the kind, the status, the layers that have the name.
      let records = [
        "-=1 file", "d=1 own directory", "d=0,1 merged directory", "--0,1 hidden", "d-0,1 hidden directory",
        "l=1 link",
      ]
      let text = try #require(ComparisonText(Array("0\0".utf8) + records.flatMap { Array($0.utf8) + [0] }))
      var counts = NameCounts(layers: 2)
      for name in text.names { counts.add(name) }
      return counts
    }
  }

  @Test("a directory counts where it is the only one, or replaces a file")
  func directories() throws {
    let records = ["d+0 own", "d+0,1 shared", "d>1,2 replaces", "->0,1,2 file", "-+1 added"]
    let text = try #require(ComparisonText(Array("0\0".utf8) + records.flatMap { Array($0.utf8) + [0] }))
    var counts = NameCounts(layers: 3)
    for name in text.names { counts.add(name) }
    #expect(counts.layers.map(\.names) == [2, 2, 0] && counts.layers.allSatisfy { $0.hides == 0 })
  }

  @Test("the control file's line holds every path unchanged")
  func line() throws {
    let every = Array("/".utf8) + (1...255).map { UInt8($0) }
    let paths = [every, Array("/a&substitution=b?#%41!/in side".utf8), Array("/plain-._~".utf8)]
    let line = LayersRequest(substitutions: paths).line
    let allowed = Set("-._~/?&=:%".utf8)
    #expect(
      line.utf8.allSatisfy {
        allowed.contains($0) || UnicodeScalar($0).properties.isAlphabetic
          || UnicodeScalar($0).properties.numericType != nil
      })
    #expect(
      line.hasSuffix("&substitution=/plain-._~")
        && line.contains("%26substitution%3Db%3F%23%2541%21/in%20side"))
    // As the daemon reads it.
    guard case .post(let url) = try ControlCommand(Array(line.utf8)) else { throw Failure.failed(line) }
    #expect(url.scheme == "bundlefs" && !url.hasHost && url.components == [Array("layers".utf8)])
    let parameters = line.split(separator: "?")[1].split(separator: "&").map { $0.split(separator: "=") }
    #expect(parameters.allSatisfy { $0.count == 2 && $0[0] == "substitution" })
    #expect(parameters.map { PercentCoding.decoded(String($0[1])) } == paths)
    #expect(LayersRequest(substitutions: []).line == "bundlefs:///layers")
  }

  @Test("an encoded path is decoded to the same bytes, a malformed one to none")
  func encoding() {
    let every = (0...255).map { UInt8($0) }
    #expect(PercentCoding.decoded(PercentCoding.encoded(path: every)) == every)
    #expect(PercentCoding.decoded("/a%2fb") == Array("/a/b".utf8))
    for malformed in ["%", "a%4", "%g0", "%4g", "%%41"] { #expect(PercentCoding.decoded(malformed) == nil) }
  }
}
