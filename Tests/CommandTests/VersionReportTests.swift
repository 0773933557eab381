import Posix
import TestSupport
import Testing

@testable import bundlefs

/// What `bundlefs -V` says.
@Suite struct VersionReportTests {
  @Test(
    "a kernel's release is its first two numbers",
    arguments: [
      ("6.18.44-amd64", "6.18"), ("5.10.0-28-cloud-amd64", "5.10"), ("6.9-rc3", "6.9"), ("10.0", "10.0"),
      ("6", nil), ("", nil), ("x.y", nil), ("-6.1", nil), ("6.", nil), ("99999999999999999999.1", nil),
      ("٦.1", nil),
    ])
  func release(name: String, expected: String?) { #expect(KernelRelease(name)?.description == expected) }

  @Test("a kernel has the features of all releases up to its own")
  func features() {
    #expect(KernelFeature.line("6.9.0") == "Linux 6.9.0: all features")
    #expect(KernelFeature.line("6.18.44-amd64") == "Linux 6.18.44-amd64: all features")
    #expect(
      KernelFeature.line("6.8.12") == "Linux 6.8.12: without survive, upgrade, layers, passthrough (6.9)")
    let old = KernelFeature.line("5.4.0")
    for feature in KernelFeature.all { #expect(old.contains("\(feature.name) (\(feature.since))")) }
    #expect(KernelFeature.line("strange") == "Linux strange")
  }

  @Test("the guide to platforms has a row for each release that counts")
  func guide() throws {
    let guide = ByteString(#filePath).parent.parent.parent / "Sources/Volume/Volume.docc/Platforms.md"
    let text = try guide.readText()
    for feature in KernelFeature.all { #expect(text.contains("| Linux \(feature.since) |")) }
  }

  @Test("the report has a line for bundlefs, for libfuse and for the kernel")
  func lines() throws {
    let lines = VersionReport.text.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[0].wholeMatch(of: #/bundlefs \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(-dirty)?\))?/#) != nil)
    #expect(lines[1].wholeMatch(of: #/libfuse 3\.\d+\.\d+/#) != nil)
    #expect(lines[2].hasPrefix("Linux \(ThisProcess.kernelRelease)"))
  }
}
