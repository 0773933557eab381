@testable import Bundles
import PropertyLists

/// libFuzzer's entry point. The input is a property list: XML, binary or OpenStep.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  let all = PropertyList.strings(in: text, for: ["a", "b", "é"])
  for (key, value) in all ?? [:] {
    // A byte of Latin-1 becomes two in UTF-8, a unit of UTF-16 three.
    precondition(value.utf8.count <= 2 * count)
    precondition(PropertyList.strings(in: text, for: [key]) == [key: value])
  }
  let info = InfoPlist(propertyList: text)
  precondition((info == nil) == (all == nil), "whether it is malformed does not depend on the keys")
  for name in [info?.identifier, info?.developmentRegion] {
    if let name { precondition((1...255).contains(name.utf8.count) && !name.contains("/")) }
  }
  return 0
}
