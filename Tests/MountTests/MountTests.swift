import Testing

/// All tests that mount, run serially: a mount keeps two cores busy, and some tests drop the kernel's caches.
@Suite(.serialized) struct MountTests {}
