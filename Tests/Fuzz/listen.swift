import Routing

@testable import ControlClient

/// libFuzzer's entry point. The input is, by its first byte, what a daemon replies to `bundlefs listen`, or what others
/// write to a control file, as its results come to `bundlefs listen`.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard input.count > 2 else { return 0 }
  let first = input[0]
  if first & 1 == 0 { readReplies(input[1...]) } else { readResults(of: input[2...], pageSize: input) }
  return 0
}

/// Pages of a daemon that may be anyone's.
private func readReplies(_ input: ArraySlice<UInt8>) {
  var rest = input
  var reader = ResultReader(after: UInt64(rest.popFirst() ?? 0))
  while let page = nextPage(&rest, near: reader.position.sequence) {
    let before = reader.position.sequence
    guard let batch = try? reader.take(page) else { return }
    let after = reader.position.sequence
    precondition(after >= before)
    precondition(
      !batch.hasMore || after > before || reader.position.offset > 0, "a page that says more has some")
    if let missed = batch.missed {
      precondition(missed.lowerBound == before && missed.upperBound < after)
    }
    let numbers = batch.results.map(\.sequence)
    precondition(numbers == Array((after - UInt64(numbers.count))..<after), "the numbers are consecutive")
    for result in batch.results { check(result) }
  }
}

/// The header of a page in few bytes, since random numbers of 64 bits would hardly ever continue others.
private func nextPage(_ rest: inout ArraySlice<UInt8>, near next: UInt64) -> ResultsProtocol.Page? {
  guard rest.count >= 3, let first = rest.popFirst(), let newest = rest.popFirst(), let size = rest.popFirst()
  else { return nil }
  let text = rest.prefix(Int(size) * 4)
  rest = rest.dropFirst(text.count)
  let begins = first == 255 ? UInt64.max : next &+ UInt64(first >> 4)
  return ResultsProtocol.Page(
    first: begins, newest: newest == 255 ? .max : begins &+ UInt64(newest >> 4), text: text)
}

/// What a program is given of a result.
private func check(_ result: ResultLine) {
  for variable in result.environment {
    precondition(variable.starts(with: "BUNDLEFS_".utf8) && variable.contains(UInt8(ascii: "=")))
    precondition(!variable.contains(0))
  }
  let printed = String(decoding: result.bytes, as: UTF8.self).escapingControls
  precondition(!printed.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }, "it is printable")
}

/// The lines are commands. Their results must come as they are, whatever the size of the pages.
private func readResults(of input: ArraySlice<UInt8>, pageSize bytes: [UInt8]) {
  let lines = input.split(separator: UInt8(ascii: "\n")).prefix(1000).map { Array($0) }
  let results = makeResults(of: lines)
  let text = results.flatMap { $0 + [UInt8(ascii: "\n")] }
  let size = 1 + Int(bytes[1]) << 4
  var reader = ResultReader(after: 0)
  var (read, offset): ([ResultLine], Int) = ([], 0)
  while offset < text.count {
    let page = ResultsProtocol.Page(
      first: reader.position.sequence, newest: UInt64(results.count), text: text[offset...].prefix(size))
    guard let received = ResultsProtocol.page(in: ResultsProtocol.reply(page)),
      let batch = try? reader.take(received)
    else { fatalError("a page is refused") }
    precondition(batch.missed == nil)
    read += batch.results
    offset += page.text.count
  }
  precondition(read.map(\.bytes) == results)
  for result in read { check(result) }
}

/// The most bytes of a result: of each byte of a line at most six, in the URL and its parts.
private let largestResult = 2 << 20

private func makeResults(of lines: [[UInt8]]) -> [[UInt8]] {
  var table = RouteTable()
  var results: [[UInt8]] = []
  for line in lines {
    guard let outcome = outcome(of: line, &table) else { continue }
    let result = RouteResult(
      sequence: UInt64(results.count + 1), time: Timestamp(seconds: 0, nanoseconds: 0),
      url: Array(line.prefix(RouteURL.maxLength)), outcome: outcome
    ).json
    precondition(result.count <= largestResult, "a result is bounded")
    precondition(isPrintable(result), "a result is printable")
    results.append(result)
  }
  return results
}

private func outcome(of line: [UInt8], _ table: inout RouteTable) -> RouteResult.Outcome? {
  do throws(RoutingError) {
    switch try ControlCommand(line[...]) {
    case .ignored: return nil
    case .post(let url), .match(let url):
      guard let match = try table.match(url) else { throw RoutingError(.noRoute, "no route matches") }
      return .posted(match)
    case .route(let route, nil): try table.append(route)
    case .route(let route, let other?): try table.insert(route, before: other)
    case .unroute(let name): table.remove(name: name)
    case .reset: table.removeAll()
    }
    return .applied()
  } catch { return .rejected(error) }
}

/// Whether bytes are UTF-8 without control characters and line separators.
private func isPrintable(_ bytes: [UInt8]) -> Bool {
  guard let text = String(validating: bytes, as: UTF8.self) else { return false }
  return !text.unicodeScalars.contains {
    $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || (0x2028...0x202E).contains($0.value)
  }
}
