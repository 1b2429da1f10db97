/* Errors: numbers and texts are those of the CUDA runtime that torch brings; when they surface is decided here. */
#include "sim.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int pending, sticky, last;
static char assert_line[512];

int sim_sticky(void) { return sticky; }

int sim_fail(int code) {
  if (code) {
    last = code;
    sim_log("error %d", code);
  }
  return code;
}

int sim_gate(const char *function) {
  static long seen;
  int code = sim_planned("SIMCUDA_REFUSE", function, &seen);
  if (code) {
    sim_log("refused %s %d", function, code);
    return sim_fail(code);
  }
  if (sim_number("SIMCUDA_DRIVER", CUDART_VERSION) < CUDART_VERSION / 1000 * 1000) return sim_fail(35);
  if (!sim_devices()) return sim_fail(100);
  return sim_fail(sticky);
}

int sim_surface(void) {
  sim_waited();
  if (!sticky && pending) {
    sticky = pending;
    sim_log("surfaces %d", sticky);
    if (assert_line[0]) fprintf(stderr, "%s\n", assert_line);
  }
  if (!sticky && sim_capturing()) return sim_fail(900);
  return sim_fail(sticky);
}

/* Triton's assertion text lies in the image of the kernel; a real driver prints it when the fault surfaces. */
static void remember_assert(const char *kernel, const char *image, size_t size) {
  static const char mark[] = "index out of bounds";
  const char *text = image ? memmem(image, size, mark, sizeof mark - 1) : NULL;
  assert_line[0] = 0;
  if (text)
    snprintf(assert_line, sizeof assert_line, "simulated.py:1: %s: block: [0,0,0], thread: [0,0,0] Assertion `%.200s` failed.",
             kernel, text);
}

void sim_access(int code, const char *kernel, const void *image, size_t size, unsigned long long address) {
  if (pending || sticky) return;
  pending = code;
  sim_log("fault %d in %s", code, kernel);
  if (code == 710) remember_assert(kernel, image, size);
  sim_report_access(code, kernel, address);
  sim_dump_core(code, kernel);
}

void sim_fault(int code, const char *kernel, const void *image, size_t size) { sim_access(code, kernel, image, size, 0); }

/* The texts of the real runtime: it needs no driver to tell them. */
static const char *told(const char *function, int code) {
  static void *runtime;
  if (!runtime) runtime = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_LOCAL);
  const char *(*tell)(int) = runtime ? (const char *(*)(int))dlsym(runtime, function) : NULL;
  return tell ? tell(code) : "simulated error";
}

const char *sim_text(int code) { return told("cudaGetErrorString", code); }

API const char *cudaGetErrorString(cudaError_t code) { return told("cudaGetErrorString", code); }
API const char *cudaGetErrorName(cudaError_t code) { return told("cudaGetErrorName", code); }

API CUresult cuGetErrorString(CUresult code, const char **text) {
  *text = told("cudaGetErrorString", code);
  return 0;
}

API CUresult cuGetErrorName(CUresult code, const char **text) {
  *text = told("cudaGetErrorName", code);
  return 0;
}

API cudaError_t cudaGetLastError(void) {
  int code = last;
  last = sticky;
  return code;
}

API cudaError_t cudaPeekAtLastError(void) { return last; }
