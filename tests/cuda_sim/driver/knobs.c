/* Settings, read from the environment at each use: a child may change them before its first CUDA call. */
#include "sim.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sim_knob(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

long long sim_number(const char *name, long long otherwise) {
  const char *value = sim_knob(name, NULL);
  return value ? strtoll(value, NULL, 0) : otherwise;
}

int sim_devices(void) { return (int)sim_number("SIMCUDA_DEVICES", 1); }

int sim_capability(void) {
  int major = 9, minor = 0;
  sscanf(sim_knob("SIMCUDA_CC", "9.0"), "%d.%d", &major, &minor);
  return major * 10 + minor;
}

int sim_planned(const char *knob, const char *name, long *seen) {
  const char *plan = sim_knob(knob, NULL);
  char word[256];
  int code, nth = 1;
  size_t length;
  if (!plan || sscanf(plan, "%255[^:]:%d:%d", word, &code, &nth) < 2) return 0;
  length = strlen(word);
  if (word[length - 1] == '$') { /* the whole name */
    word[length - 1] = 0;
    if (strcmp(name, word)) return 0;
  } else if (!strstr(name, word)) {
    return 0;
  }
  return ++*seen == nth ? code : 0;
}

int sim_names(const char *knob, const char *name) {
  const char *plan = sim_knob(knob, NULL);
  char word[256];
  return plan && sscanf(plan, "%255[^:]", word) == 1 && strstr(name, word) != NULL;
}

void sim_log(const char *format, ...) {
  const char *path = sim_knob("SIMCUDA_LOG", NULL);
  FILE *file = path ? fopen(path, "a") : NULL; /* opened anew each time: nothing is lost in an abort */
  if (!file) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fputc('\n', file);
  fclose(file);
}
