import Layers
import Posix
import Testing

@testable import Volume

@Suite struct SurvivalPlacesTests {
  @Test func noPartReachesIntoTheNext() {
    let places = SurvivalPlaces.all
    for (place, next) in zip(places, places.dropFirst()) { #expect(place.upperBound <= next.lowerBound) }
    #expect(places.last?.upperBound == SurvivalPlaces.size)
  }

  @Test func eachPartHasRoomForAllThatItMayHold() {
    let sizes = [
      (SurvivalPlaces.journal, NodeMemory.journalCapacity * MemoryLayout<NodeMemory.Change>.stride),
      (SurvivalPlaces.inodeNumbers, (1 << 19) * MemoryLayout<NodeMemory.AssignedNumber>.stride),
      (SurvivalPlaces.spellings, NodeMemory.spellingCapacity * NodeMemory.stride),
      (SurvivalPlaces.polls, 8 + PollRecord.capacity * 8),
      (SurvivalPlaces.intents, IntentLog.capacity * IntentLog.stride),
      (SurvivalPlaces.archives, ArchiveRegistry.size),
    ]
    for (place, size) in sizes { #expect(size <= place.count) }
  }
}
