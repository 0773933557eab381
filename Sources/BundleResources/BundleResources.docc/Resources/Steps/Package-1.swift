// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "greeter",
  dependencies: [
    .package(name: "bundlefs", path: "../bundlefs")
  ],
  targets: [
    .executableTarget(
      name: "greeter",
      dependencies: [.product(name: "BundleResources", package: "bundlefs")])
  ]
)
