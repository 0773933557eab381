import Layers
import Posix
import Testing

@testable import Volume

@Suite struct SharedRegionsTests {
  @Test func noPartReachesIntoTheNext() {
    let places = SharedRegions.all
    for (place, next) in zip(places, places.dropFirst()) { #expect(place.upperBound <= next.lowerBound) }
    #expect(places.last?.upperBound == SharedRegions.size)
  }

  @Test func eachPartHasRoomForAllThatItMayHold() {
    let sizes = [
      (SharedRegions.journal, NodeMemory.journalCapacity * MemoryLayout<NodeMemory.Change>.stride),
      (SharedRegions.inodeNumbers, (1 << 19) * MemoryLayout<NodeMemory.AssignedNumber>.stride),
      (SharedRegions.spellings, NodeMemory.spellingCapacity * NodeMemory.stride),
      (SharedRegions.polls, 8 + PollRecord.capacity * 8),
      (SharedRegions.intents, IntentLog.capacity * IntentLog.stride),
      (SharedRegions.archives, ArchiveRegistry.size),
    ]
    for (place, size) in sizes { #expect(size <= place.count) }
  }
}
