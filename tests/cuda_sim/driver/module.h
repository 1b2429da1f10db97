/* Modules and their functions, as module.c makes them and launch.c launches them. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H
#include "sim.h"

enum { MANY_PARAMETERS = 128, PAGE_OF_TEXT = 4096 };

struct module {
  const char *image;
  size_t size;
  int file; /* loaded from one, as those of packages are: a compile hands its own over in memory */
};

struct function {
  char name[256];
  struct module *module;
  int parameters;
  char wide[MANY_PARAMETERS]; /* as wide as a pointer */
};
#endif
