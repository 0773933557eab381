import WebPage
import WebServer

/// The files of the page, which are embedded in the program.
enum UIPage {
  /// A file by its name; nil if there is none.
  static func response(_ name: String) -> WebResponse? {
    var index = 0
    while let file = bundlefs_page_file(index)?.pointee {
      if String(cString: file.name) == name {
        let bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
        return WebResponse(type: String(cString: file.type), .bytes(bytes))
      }
      index += 1
    }
    return nil
  }
}
