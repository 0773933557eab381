import BundleResources
import Foundation

/// Greets in the words of a bundle and its substitutions.
struct Greeter {
  let bundle: LayeredBundle
  let phrases: Phrases

  /// Greets the user with the application's name, which is in Info.plist.
  func welcome() {
    let name = bundle.object(forInfoDictionaryKey: "CFBundleName") as? String
    printLine(phrases("welcome", name ?? "Greeter"))
  }

  /// Describes the logo.
  func show(_ logo: Logo) {
    printLine(phrases("logo", logo.mimeType, logo.data.count))
  }
}
