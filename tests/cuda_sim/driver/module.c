/* Modules and functions of the package: cubins are parsed as far as needed to refuse a wrong one. */
#include "module.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETER_INFO = 0x17, SIZED = 4, NO_IMAGE = 209, BAD_IMAGE = 200, NO_FILE = 301, NO_SYMBOL = 500 };

static int is_elf(const char *image, size_t size) { return size > sizeof(Elf64_Ehdr) && !memcmp(image, ELFMAG, SELFMAG); }

/* An older minor version of the same major version runs; nothing else does. */
static int runs_here(int target) { return target / 10 == sim_capability() / 10 && target <= sim_capability(); }

static int made(CUmodule *out, const char *image, size_t size, const char *name) {
  struct module *it;
  if (is_elf(image, size)) {
    int target = ((const Elf64_Ehdr *)image)->e_flags & 0xff; /* ABI 7: the low byte */
    sim_log("module %s sm_%d", name, target);
    if (!runs_here(target)) return sim_fail(NO_IMAGE);
  } else if (size < 16) {
    return sim_fail(BAD_IMAGE);
  } else {
    sim_log("module %s which is no cubin: its targets are not looked at", name);
  }
  it = calloc(1, sizeof *it);
  it->image = image;
  it->size = size;
  *out = (CUmodule)it;
  return 0;
}

API CUresult cuModuleLoad(CUmodule *out, const char *path) {
  FILE *file;
  char *image;
  long size;
  GATE();
  if (!(file = fopen(path, "rb"))) return sim_fail(NO_FILE);
  fseek(file, 0, SEEK_END);
  size = ftell(file);
  rewind(file);
  image = malloc(size + 1);
  size = (long)fread(image, 1, size, file);
  fclose(file);
  int code = made(out, image, size, path);
  if (!code) ((struct module *)*out)->file = 1;
  return code;
}

API CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  const Elf64_Ehdr *head = image;
  size_t size = PAGE_OF_TEXT, sections, segments;
  GATE();
  if (!memcmp(image, ELFMAG, SELFMAG)) {
    sections = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    segments = head->e_phoff + (size_t)head->e_phnum * head->e_phentsize;
    size = sections > segments ? sections : segments;
  }
  return made(out, image, size, "in memory");
}

API CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values) {
  return cuModuleLoadData(out, image);
}

API CUresult cuModuleUnload(CUmodule module) { return 0; }

/* Parameters that are as wide as a pointer: ``.nv.info.<kernel>`` tells ordinal and size of each parameter. */
static void read_parameters(struct function *it) {
  const char *image = it->module->image;
  const Elf64_Ehdr *head = (const void *)image;
  const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);
  const char *names = image + sections[head->e_shstrndx].sh_offset;
  char wanted[320];
  snprintf(wanted, sizeof wanted, ".nv.info.%s", it->name);
  for (int i = 0; i < head->e_shnum; i++) {
    if (strcmp(names + sections[i].sh_name, wanted)) continue;
    const unsigned char *at = (const unsigned char *)image + sections[i].sh_offset, *end = at + sections[i].sh_size;
    while (at + 4 <= end) {
      unsigned size = at[0] == SIZED ? at[2] | at[3] << 8 : 0;
      if (at[0] == SIZED && at[1] == PARAMETER_INFO && size >= 12) {
        unsigned ordinal = at[8] | at[9] << 8, word = at[12] | at[13] << 8 | at[14] << 16 | (unsigned)at[15] << 24;
        if (ordinal < MANY_PARAMETERS) it->wide[ordinal] = word >> 18 == 8;
        if (ordinal < MANY_PARAMETERS && (int)ordinal >= it->parameters) it->parameters = (int)ordinal + 1;
      }
      at += 4 + size;
    }
  }
}

API CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
  struct module *module = (struct module *)handle;
  struct function *it;
  GATE();
  if (is_elf(module->image, module->size) && !memmem(module->image, module->size, name, strlen(name) + 1)) return sim_fail(NO_SYMBOL);
  it = calloc(1, sizeof *it);
  snprintf(it->name, sizeof it->name, "%s", name);
  it->module = module;
  if (is_elf(module->image, module->size)) read_parameters(it);
  *out = (CUfunction)it;
  return 0;
}

API CUresult cuFuncGetName(const char **name, CUfunction handle) {
  *name = ((struct function *)handle)->name;
  return 0;
}

API CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value) {
  GATE();
  return which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > SHARED_OPT_IN ? sim_fail(1) : 0;
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction handle) {
  *value = which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? MANY_THREADS : 0;
  return 0;
}

API CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) { return 0; }
