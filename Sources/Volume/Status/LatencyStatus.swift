import Fuse
import Routing

/// What `bundlefs status` tells about the time that requests take.
struct LatencyStatus {
  /// The upper bounds of the buckets in microseconds; the last bucket has none.
  let bounds: [UInt64]
  let counts: [UInt64]
  /// The sum of all times.
  let microseconds: UInt64

  /// - Parameter latencies: nil before the start.
  init(_ latencies: RequestLatencies?) {
    bounds = RequestLatencies.bounds
    counts = latencies?.counts ?? bounds.map { _ in 0 } + [0]
    microseconds = latencies?.microseconds ?? 0
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.name("bounds")
      json.array(bounds) { $0.integer($1) }
      json.name("counts")
      json.array(counts) { $0.integer($1) }
      json.member("microseconds", microseconds)
    }
  }
}
