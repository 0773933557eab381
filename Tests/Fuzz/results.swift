import Routing

/// libFuzzer's entry point. The input is a line of a control file, as a client reads it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  if let value = JSONValue(text) {
    guard let again = JSONValue(written(value)) else { preconditionFailure("what was written is not JSON") }
    precondition(JSONValue(written(again)) == again, "JSON reads back")
  }
  if let line = ResultLine(text[...]) {
    precondition(line.sequence > 0)
    _ = (line.isRejected, line.isResult(of: text), line.isPosted(as: [text]))
    if let posted = line.posted { precondition(posted.sequence == line.sequence) }
  }
  _ = StatusProtocol.page(in: text, after: count)
  _ = ResultsProtocol.page(in: text)
  _ = String(escaping: text)
  return 0
}

private func written(_ value: JSONValue) -> [UInt8] {
  var json = JSONWriter()
  write(value, to: &json)
  return json.bytes
}

private func write(_ value: JSONValue, to json: inout JSONWriter) {
  switch value {
  case .string(let text): json.string(text)
  case .integer(let number): json.integer(number)
  case .number(let number): json.number(number)
  // The writer has booleans as members only.
  case .boolean(let flag): json.integer(flag ? 1 : 0)
  case .null: json.null()
  case .array(let values): json.array(values) { write($1, to: &$0) }
  case .object(let members):
    json.object { json in
      for (name, value) in members {
        json.name(name)
        write(value, to: &json)
      }
    }
  }
}
