// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target: the Swift 6 language mode is the tools version's default; a warning is an error.
let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// A folder of static libraries that the command is linked with where it has them: with nothing but glibc needed at run
/// time, one program runs on each distribution. Glibc's functions are bound at the start, after which their table is
/// read-only. A build ID would be one of debugging information as well, which differs from build to build.
let staticLibraries = Context.environment["BUNDLEFS_STATIC_LIBRARIES"].map { folder in
  [
    "-L\(folder)", "-Xclang-linker", "-static-libgcc", "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker",
    "--build-id=none",
  ]
}

/// Dependencies of layers that are archives, and of layers and resources by URL.
let archives: TargetDependencyCondition? = .when(traits: ["Archives"])
let networking: TargetDependencyCondition? = .when(traits: ["Networking"])

/// The commit that `bundlefs -V` names, from scripts/lib/common.sh.
let commit = Context.environment["BUNDLEFS_COMMIT"] ?? ""

let package = Package(
  name: "bundlefs",
  products: [
    .executable(name: "bundlefs", targets: ["bundlefs"]),
    .library(name: "BundleResources", targets: ["BundleResources"]),
  ],
  // Of the library. The command needs both.
  traits: [
    .default(enabledTraits: ["Archives", "Networking"]),
    .trait(
      name: "Archives",
      description: "Layers may be archives; needs headers of zlib, libbz2 and libarchive to be built."),
    .trait(
      name: "Networking",
      description: "URLSession loads resources, and archives may be on the web; needs headers of libcurl."),
  ],
  targets: [
    // Without pkg-config, which would warn of missing headers also where only the library is built, without FUSE, and
    // would have the dynamic library taken where a static one is wanted.
    .systemLibrary(name: "CFuse", providers: [.apt(["libfuse3-dev"])]),
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CBzip2", providers: [.apt(["libbz2-dev"])]),
    // Headers only: these libraries are loaded on demand.
    .systemLibrary(name: "CArchive", providers: [.apt(["libarchive-dev"])]),
    // Left out where its headers are not installed.
    .systemLibrary(name: "CIsal", providers: [.apt(["libisal-dev"])]),
    .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    // Needs no header.
    .systemLibrary(name: "CUTF8Proc"),
    .systemLibrary(name: "CMicroHTTPD", providers: [.apt(["libmicrohttpd-dev"])]),
    .target(name: "CLinux"),
    .target(name: "CVersion", cSettings: [.define("BUNDLEFS_COMMIT", to: "\"\(commit)\"")]),
    .target(name: "CLibrary", swiftSettings: strict),
    .target(name: "Containers", swiftSettings: strict),
    .target(name: "Posix", dependencies: ["CLibrary", "CLinux", "Containers"], swiftSettings: strict),
    .target(
      name: "RemoteFiles",
      dependencies: ["CLibrary", .target(name: "CCurl", condition: networking), "Posix"],
      swiftSettings: strict),
    .target(name: "Holder", dependencies: ["CLinux", "Posix"], swiftSettings: strict),
    .target(name: "Fuse", dependencies: ["CFuse", "Posix"], swiftSettings: strict),
    .target(
      name: "Layers",
      dependencies: [
        .target(name: "CArchive", condition: archives), .target(name: "CBzip2", condition: archives),
        .target(name: "CIsal", condition: archives), .target(name: "CZlib", condition: archives),
        "CLibrary", "CUTF8Proc", "Containers", "Posix", "PropertyLists", "RemoteFiles", "StringTables",
      ],
      swiftSettings: strict),
    .target(name: "Routing", dependencies: ["CLibrary", "Containers"], swiftSettings: strict),
    .target(name: "PropertyLists", dependencies: ["CLibrary"], swiftSettings: strict),
    .target(name: "StringTables", dependencies: ["CLibrary", "PropertyLists"], swiftSettings: strict),
    .target(
      name: "Bundles", dependencies: ["CLibrary", "Containers", "Layers", "Posix", "PropertyLists"],
      swiftSettings: strict
    ),
    .target(
      name: "Volume",
      dependencies: ["Containers", "Fuse", "Bundles", "Layers", "RemoteFiles", "Routing", "Posix"],
      swiftSettings: strict),
    .target(name: "ControlClient", dependencies: ["CLibrary", "Routing", "Posix"], swiftSettings: strict),
    .target(name: "WebServer", dependencies: ["CMicroHTTPD", "Posix"], swiftSettings: strict),
    // The page's files become a part of the program.
    .target(name: "WebPage", exclude: ["Page"]),
    .target(
      name: "BundleResources",
      dependencies: [
        "CLibrary", "Containers", "ControlClient", "Bundles", "Layers", "PropertyLists", "Routing",
        "StringTables",
        "Posix",
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "bundlefs",
      dependencies: [
        "CVersion", "Volume", "ControlClient", "Fuse", "Holder", "Bundles", "Layers", "RemoteFiles",
        "Routing", "Posix",
        "PropertyLists",
        "StringTables",
        "WebPage",
        "WebServer",
      ],
      swiftSettings: strict,
      // The other linker, gold, warns of calls inside Foundation's static library.
      linkerSettings: [.unsafeFlags(["-use-ld=lld"] + (staticLibraries ?? []))]),
    .target(
      name: "TestSupport", dependencies: ["Posix"], path: "Tests/TestSupport", swiftSettings: strict),
    .executableTarget(
      name: "stressreader", dependencies: ["Posix", "TestSupport"], path: "Tests/StressReader",
      swiftSettings: strict),
    .executableTarget(
      name: "benchprobe", dependencies: ["Posix"], path: "Tests/BenchProbe", swiftSettings: strict),
    .executableTarget(
      name: "routebench", dependencies: ["Routing"], path: "Tests/RouteBench", swiftSettings: strict),
    .executableTarget(
      name: "librarybench", dependencies: ["BundleResources"], path: "Tests/LibraryBench",
      swiftSettings: strict),
    .executableTarget(
      name: "greeter", dependencies: ["BundleResources"], path: "Tests/Greeter", exclude: ["Greeter.app"],
      swiftSettings: strict),
    .executableTarget(
      name: "foundationprobe", dependencies: ["TestSupport"], path: "Tests/FoundationProbe",
      swiftSettings: strict),
    .testTarget(
      name: "ContainersTests", dependencies: ["Containers", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "PosixTests", dependencies: ["Posix", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "RemoteFilesTests", dependencies: ["RemoteFiles", "Posix", "TestSupport"],
      exclude: ["wrong_server.py"], swiftSettings: strict),
    .testTarget(
      name: "FuseTests", dependencies: ["Fuse", "CFuse", "Posix", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "LayersTests", dependencies: ["CZlib", "Layers", "StringTables", "Posix", "TestSupport"],
      swiftSettings: strict),
    .testTarget(name: "RoutingTests", dependencies: ["Routing", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "PropertyListsTests", dependencies: ["PropertyLists", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "StringTablesTests", dependencies: ["PropertyLists", "StringTables", "Posix", "TestSupport"],
      swiftSettings: strict,
      // Foundation's ICU judges the plural rules.
      linkerSettings: [.linkedLibrary("_FoundationICU")]),
    .testTarget(
      name: "BundlesTests", dependencies: ["foundationprobe", "Bundles", "Layers", "Posix", "TestSupport"],
      swiftSettings: strict,
      // Foundation's ICU judges the matching of languages.
      linkerSettings: [.linkedLibrary("_FoundationICU")]),
    .testTarget(
      name: "VolumeTests", dependencies: ["Volume", "Fuse", "Layers", "Routing", "Posix", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "ControlClientTests", dependencies: ["ControlClient", "Posix", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "BundleResourcesTests",
      dependencies: [
        "BundleResources", "greeter", "bundlefs", "Bundles", "StringTables", "Posix", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CommandTests",
      dependencies: ["bundlefs", "Holder", "Volume", "Routing", "Posix", "TestSupport", "WebServer"],
      swiftSettings: strict),
    .testTarget(
      name: "MountTests",
      dependencies: [
        "bundlefs", "stressreader", "Bundles", "Layers", "StringTables", "Routing", "Posix", "TestSupport",
      ],
      exclude: [
        "Archives/compare_archive.py", "Archives/container_model.py",
        "Archives/foreign_archives.py", "Install/complete.py",
        "Mounting/list32.c", "Pages/browser.py", "UI/ui_browser.py", "Writing/Model/adversaries.py",
      ],
      swiftSettings: strict),
  ]
)
