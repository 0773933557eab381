import Routing

/// libFuzzer's entry point. The input is a URL.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  do throws(RoutingError) {
    let url = try RouteURL(text)
    let components = url.components
    precondition(components.count <= RouteURL.maxComponents && !components.contains([]))
    precondition(components.reduce(0) { $0 + $1.count } <= count, "decoding never lengthens")
    precondition(url.scheme == url.scheme.lowercased())
    if let match = try routes.match(url) { check(match, url, count) }
  } catch {
    precondition(error.offset.map { $0 <= count } ?? (error.code == .tooLong))
  }
  return 0
}

/// Checks that the result is one line of bounded length: each byte occurs at most twice and takes at most six bytes
/// in JSON.
private func check(_ match: RouteMatch, _ url: RouteURL, _ count: Int) {
  let time = Timestamp(seconds: 0, nanoseconds: 0)
  let json = RouteResult(sequence: 1, time: time, url: url.text, outcome: .posted(match)).json
  precondition(json.count <= 12 * count + 1024 && !json.contains { $0 < 0x20 })
}

private let routes = {
  var table = RouteTable()
  let patterns = [
    "l:(a)A/i:B/f:C", "x://s:A/i:B?c=i:C&d=s?:D", "f:A/f:B", "s:A?c=l:(d)C", "i:A/s:B/*:C", "s:A", "y://*:A",
    "s:A/s:B",
  ]
  for pattern in patterns {
    guard let pattern = try? RoutePattern(pattern), let route = try? Route(name: "N", pattern: pattern),
      (try? table.append(route)) != nil
    else { fatalError("the patterns are valid") }
  }
  return table
}()
