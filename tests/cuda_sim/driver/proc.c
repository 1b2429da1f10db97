/* What the kernel module would show in /proc/driver/nvidia: reads of that folder go to $SIMCUDA_PROC. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ROOT[] = "/proc/driver/nvidia";

static const char *instead(const char *path, char *room, size_t size) {
  const char *folder = getenv("SIMCUDA_PROC");
  if (!folder || !path || strncmp(path, ROOT, sizeof ROOT - 1)) return path;
  snprintf(room, size, "%s%s", folder, path + sizeof ROOT - 1);
  return room;
}

__attribute__((visibility("default"))) DIR *opendir(const char *path) {
  static DIR *(*real)(const char *);
  char room[4096];
  if (!real) real = dlsym(RTLD_NEXT, "opendir");
  return real(instead(path, room, sizeof room));
}

#define OPENS(name)                                                        \
  __attribute__((visibility("default"))) int name(const char *path, int flags, ...) { \
    static int (*real)(const char *, int, ...);                            \
    char room[4096];                                                       \
    va_list arguments;                                                     \
    va_start(arguments, flags);                                            \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0; \
    va_end(arguments);                                                     \
    if (!real) real = dlsym(RTLD_NEXT, #name);                             \
    return real(instead(path, room, sizeof room), flags, mode);            \
  }
OPENS(open)
OPENS(open64)
