import Foundation
import Glibc

/// Prints a line at once, even to a pipe or a file.
func printLine(_ line: String) {
  print(line)
  fflush(nil)
}

/// Prints an error's sentence to standard error.
func printError(_ error: any Error) {
  FileHandle.standardError.write(Data("greeter: \(error.localizedDescription)\n".utf8))
}
