import Routing
import Testing

@testable import bundlefs

/// The text that `bundlefs metrics` makes of statuses.
@Suite struct MountMetricsTests {
  private func metrics(_ path: String, _ json: String?) throws -> MountMetrics {
    let health = HealthReport(dead: Array(path.utf8), "")
    return MountMetrics(health: health, status: try json.map { try #require(JSONValue(Array($0.utf8))) })
  }

  @Test("the samples of a family are together, counters end in _total, the text ends in EOF")
  func text() throws {
    let text = MountMetrics.text(of: [
      try metrics(
        "/a", #"{"nodes":3,"requests":{"READ":2,"LOOKUP":1},"contents":{"bytes":7},"survival":null}"#),
      try metrics("/b", nil), try metrics("/c", #"{"nodes":4,"survival":{"restarts":5}}"#),
    ])
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.suffix(2) == ["# EOF", ""])
    let nodes = try #require(lines.firstIndex(of: "# TYPE bundlefs_nodes gauge"))
    #expect(
      lines[(nodes + 2)...].prefix(2) == [
        #"bundlefs_nodes{mountpoint="/a"} 3"#, #"bundlefs_nodes{mountpoint="/c"} 4"#,
      ])
    let requests = try #require(lines.firstIndex(of: "# TYPE bundlefs_requests counter"))
    #expect(
      lines[(requests + 2)...].prefix(2) == [
        #"bundlefs_requests_total{mountpoint="/a",kind="lookup"} 1"#,
        #"bundlefs_requests_total{mountpoint="/a",kind="read"} 2"#,
      ])
    #expect(lines.contains(#"bundlefs_restarts_total{mountpoint="/c"} 5"#))
    #expect(lines.contains("# UNIT bundlefs_archive_cache_bytes bytes"))
    #expect(lines.filter { $0.hasPrefix("bundlefs_health{") }.count == 3)
    // A family without samples is left out, with its description.
    #expect(!text.contains("bundlefs_watches"))
  }

  @Test("what a label cannot contain is escaped")
  func escaping() {
    var metrics = OpenMetrics()
    let label = OpenMetrics.Label(name: "a", value: "\"\\\n\u{e9}")
    metrics.add("x", .gauge, help: "two\nlines", [OpenMetrics.Sample(labels: [label], value: -1)])
    #expect(metrics.text == "# TYPE x gauge\n# HELP x two\\nlines\nx{a=\"\\\"\\\\\\n\u{e9}\"} -1\n# EOF\n")
  }

  @Test("a histogram's buckets have those below in them, in seconds")
  func histogram() throws {
    let json = #"{"latencies":{"bounds":[10,200,5000000],"counts":[1,0,2,3],"microseconds":61000007}}"#
    let lines = MountMetrics.text(of: [try metrics("/a", json)]).split(separator: "\n")
    let name = "bundlefs_request_duration_seconds"
    let start = try #require(lines.firstIndex(of: "# TYPE \(name) histogram"))
    let expected = [
      #"_bucket{mountpoint="/a",le="0.00001"} 1"#, #"_bucket{mountpoint="/a",le="0.0002"} 1"#,
      #"_bucket{mountpoint="/a",le="5.0"} 3"#, #"_bucket{mountpoint="/a",le="+Inf"} 6"#,
      #"_count{mountpoint="/a"} 6"#, #"_sum{mountpoint="/a"} 61.000007"#,
    ]
    #expect(lines[start + 1] == "# UNIT \(name) seconds")
    #expect(lines[(start + 3)...].prefix(6).map { String($0) } == expected.map { name + $0 })
    #expect(try !MountMetrics.text(of: [metrics("/a", "{}")]).contains(name))
  }

  @Test("layers have a sample each")
  func layers() throws {
    let json =
      #"{"layers":[{"path":"/m","caching":true,"unresponsive":null},{"path":"/n","caching":false,"unresponsive":4}]}"#
    let text = MountMetrics.text(of: [try metrics("/a", json)])
    for line in [
      #"bundlefs_layer_caching{mountpoint="/a",layer="/m"} 1"#,
      #"bundlefs_layer_caching{mountpoint="/a",layer="/n"} 0"#,
      #"bundlefs_layer_unresponsive_seconds{mountpoint="/a",layer="/n"} 4"#,
    ] { #expect(text.contains(line + "\n")) }
  }
}
