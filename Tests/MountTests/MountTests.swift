import Testing

/// Everything that mounts, one after the other: a mount keeps two cores busy, and some tests drop the
/// kernel's caches.
@Suite(.serialized) struct MountTests {}
