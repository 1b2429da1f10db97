/* What NVIDIA's tools would write of a planned fault: the text of compute-sanitizer, and a dump that ../tools/cuda-gdb reads.
 * The forms are those of NVIDIA's documentation; the thread is always the first one. */
#include "sim.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sim_under_tool(void) { return sim_knob("SIMCUDA_TOOL", NULL) != NULL; }

static int under(const char *tool) { return !strcmp(sim_knob("SIMCUDA_TOOL", ""), tool); }

static void append(const char *knob, const char *format, ...) {
  const char *path = sim_knob(knob, NULL);
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

void sim_report_access(int code, const char *kernel, unsigned long long address) {
  static const char log[] = "SIMCUDA_TOOL_LOG", head[] = "========= ";
  unsigned long long start;
  size_t size;
  if (!under("memcheck") || (code != 700 && code != 716)) return;
  append(log, "%sInvalid __global__ write of size 4 bytes\n", head);
  append(log, "%s    at %s+0x70 in simulated.py:1\n%s    by thread (0,0,0) in block (0,0,0)\n", head, kernel, head);
  append(log, "%s    Access to 0x%llx is %s\n", head, address, code == 716 ? "misaligned" : "out of bounds");
  sim_nearest(address, &start, &size);
  if (size && address >= start + size)
    append(log, "%s    and is %llu bytes after the nearest allocation at 0x%llx of size %zu bytes\n", head, address - start - size + 1, start,
           size);
  append(log, "%s\n", head);
}

void sim_report_hazard(const char *kernel) {
  static const char log[] = "SIMCUDA_TOOL_LOG", head[] = "========= ";
  if (!under("racecheck")) return;
  append(log, "%sError: Race reported between Write access at %s+0x130 in simulated.py:1\n", head, kernel);
  append(log, "%s    and Read access at %s+0x160 in simulated.py:2 [34 hazards]\n%s\n", head, kernel, head);
}

/* A real driver ends the program after the dump, unless it was told not to. */
void sim_dump_core(int code, const char *kernel) {
  if (!sim_number("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", 0)) return;
  if (sim_number("SIMCUDA_NO_CORE", 0)) return;
  append("CUDA_COREDUMP_FILE", "simulated GPU core dump\n%d %s\n", code, kernel);
  sim_log("core dump");
  if (!strstr(sim_knob("CUDA_COREDUMP_GENERATION_FLAGS", ""), "skip_abort")) abort();
}
