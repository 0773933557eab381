import Routing

@testable import ControlClient

/// libFuzzer's entry point. The input is how many bytes a write took, the lines that `bundlefs route` wrote, an empty line,
/// and the lines that it reads as results.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard input.count > 2 else { return 0 }
  let written = Int(input[0]) << 8 | Int(input[1])
  let lines = input[2...].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  let commands = lines.prefix { !$0.isEmpty }.map { ControlFileWriter.Command(Array($0), url: Array($0)) }
  if commands.isEmpty { return 0 }
  checkForeign(commands, written, lines.dropFirst(commands.count).compactMap { ResultLine($0) })
  checkOwn(commands)
  return 0
}

/// Whatever the results, each write has an outcome, so that the command ends.
private func checkForeign(
  _ commands: [ControlFileWriter.Command], _ written: Int, _ results: [ResultLine]
) {
  let outcomes = ControlFileWriter.outcomes(of: commands[...], written: written, results)
  precondition((1...commands.count).contains(outcomes.count))
  let numbers = outcomes.compactMap(\.result?.sequence)
  precondition(numbers.count <= results.count)
  for (command, outcome) in zip(commands, outcomes) {
    if let result = outcome.result { precondition(result.isResult(of: command.line)) }
    _ = outcome.result.map { String(printing: $0.bytes) }
  }
}

/// The results of the commands, among those of other writers, are found in their order.
private func checkOwn(_ commands: [ControlFileWriter.Command]) {
  var results: [ResultLine] = []
  for (index, command) in commands.enumerated() {
    for url in [Array("other:\(index)".utf8), command.line] {
      let json = RouteResult(
        sequence: UInt64(results.count + 1), time: Timestamp(seconds: 0, nanoseconds: 0), url: url,
        outcome: .applied()
      ).json
      guard let line = ResultLine(json[...]) else { fatalError("a result does not parse") }
      results.append(line)
    }
  }
  let size = commands.reduce(0) { $0 + $1.line.count + 1 }
  let outcomes = ControlFileWriter.outcomes(of: commands[...], written: size, results)
  precondition(outcomes.count == commands.count)
  let found = outcomes.map { $0.result?.sequence ?? 0 }
  precondition(found.allSatisfy { $0 > 0 } && zip(found, found.dropFirst()).allSatisfy { $0 < $1 })
}
