#include "commit.h"

// A module of its own, so that a new commit compiles nothing else.
const char *bundlefs_commit(void) { return BUNDLEFS_COMMIT; }
