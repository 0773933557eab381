// list32 FOLDER [PAUSE FILE]: a program without large-file support, as many of 32 bits are. Prints the names in a
// folder, and calls stat(2) on each that is still there. Those that begin with t come and go, and can be other files by
// then. With PAUSE it waits for a file after so many names instead.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 4 && sizeof(ino_t) == 4, "for 32 bits only");

int main(int count, char **arguments) {
  if (count < 2 || chdir(arguments[1]) != 0) return 2;
  long pause = count > 3 ? atol(arguments[2]) : -1;
  DIR *folder = opendir(".");
  if (!folder) return 2;
  for (long read = 0;; read++) {
    errno = 0;
    struct dirent *entry = readdir(folder);
    if (!entry) break;
    puts(entry->d_name);
    if (read == pause) {
      fflush(stdout);
      while (access(arguments[3], F_OK) != 0) usleep(1000);
    }
    struct stat status;
    if (pause >= 0) continue;
    if (lstat(entry->d_name, &status) != 0) {
      if (errno == ENOENT) continue;
      fprintf(stderr, "%s: %s\n", entry->d_name, strerror(errno));
      return 1;
    }
    if (strcmp(entry->d_name, "..") != 0 && entry->d_name[0] != 't' && status.st_ino != entry->d_ino) {
      fprintf(stderr, "%s: d_ino %lu, st_ino %lu\n", entry->d_name, entry->d_ino, status.st_ino);
      return 1;
    }
  }
  if (errno != 0) perror("readdir");
  return errno != 0;
}
