#ifndef BUNDLEFS_COMMIT_H
#define BUNDLEFS_COMMIT_H

/// The commit that the program was built from, with `-dirty` if files had changed since; empty if the build names none.
const char *bundlefs_commit(void);

#endif
