/* Launches: of the package (driver API) and of ATen (runtime API). No kernel is executed.
 *
 * A launch that cannot be is refused at once; a fault waits for a synchronisation, unless launches block. A pointer of
 * the package's kernel that is no device memory is a fault too, as it is where the device cannot see host memory.
 */
#include "module.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOWEST_ADDRESS = 1 << 24, ILLEGAL_ADDRESS = 700, INVALID_VALUE = 1, TOO_MANY_RESOURCES = 701 };

static int blocking(void) { return (int)sim_number("CUDA_LAUNCH_BLOCKING", 0); }

static int impossible(unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared) {
  if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || !threads || shared > SHARED_OPT_IN) return INVALID_VALUE;
  return threads > MANY_THREADS ? TOO_MANY_RESOURCES : 0;
}

/* Before the kernel is handed over: refused by plan, by an earlier fault, or because it cannot be. */
static int admitted(const char *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared) {
  static long count;
  int code = strcmp(sim_knob("SIMCUDA_SURFACE", "sync"), "launch") ? 0 : sim_surface();
  if (!code) code = sim_gate(kernel);
  if (code) return code;
  sim_log("launch %ld %s grid %u,%u,%u threads %u shared %zu", ++count, kernel, gx, gy, gz, threads, shared);
  return sim_fail(impossible(gx, gy, gz, threads, shared));
}

static int under_way; /* launches that nobody has waited for */
static int damaged;   /* something was written beyond a buffer, and nobody noticed */

void sim_waited(void) { under_way = 0; }

/* Whether the planned fault shows here. Tools wait for each launch, so that a race is gone under them. */
static int condition(CUstream stream, const struct function *it) {
  const char *only = sim_knob("SIMCUDA_ONLY", NULL);
  if (sim_knob("SIMCUDA_REACH", NULL) && !damaged) return 0;
  if (!only) return 1;
  if (!strcmp(only, "file")) return it && it->module->file;
  if (sim_under_tool() || !under_way) return 0;
  return strcmp(only, "default-stream") || !stream;
}

static int handed_over(const char *kernel, const struct function *it, CUstream stream) {
  static long seen;
  int code = condition(stream, it) ? sim_planned("SIMCUDA_FAULT", kernel, &seen) : 0;
  if (code) sim_fault(code, kernel, it ? it->module->image : NULL, it ? it->module->size : 0);
  if (sim_names("SIMCUDA_HAZARD", kernel)) sim_report_hazard(kernel);
  under_way++;
  return blocking() ? sim_surface() : 0;
}

int sim_launch(const char *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared) {
  int code = admitted(kernel, gx, gy, gz, threads, shared);
  return code ? code : handed_over(kernel, NULL, NULL);
}

/* The byte that SIMCUDA_REACH tells of, behind the first pointer: a fault, or damage that a later kernel stumbles over. */
static void reach(const struct function *it, unsigned long long pointer) {
  const char *plan = sim_knob("SIMCUDA_REACH", NULL), *colon = plan ? strrchr(plan, ':') : NULL;
  size_t bytes = colon ? strtoull(colon + 1, NULL, 0) : 0;
  if (!bytes || !sim_names("SIMCUDA_REACH", it->name)) return;
  if (sim_beyond(pointer, bytes)) sim_access(ILLEGAL_ADDRESS, it->name, NULL, 0, pointer + bytes);
  damaged = 1;
}

static void look_at_pointers(const struct function *it, void **arguments) {
  int pointers = 0;
  for (int i = 0; arguments && i < it->parameters; i++) {
    unsigned long long word;
    if (!it->wide[i] || !arguments[i]) continue;
    memcpy(&word, arguments[i], sizeof word);
    /* A small number is a size; an address of host memory is far above. */
    if (word < LOWEST_ADDRESS) continue;
    if (!sim_owns(word)) sim_access(ILLEGAL_ADDRESS, it->name, NULL, 0, word);
    if (!pointers++) reach(it, word);
  }
}

static int launch_function(const struct function *it, unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared,
                           CUstream stream, void **arguments) {
  int code = admitted(it->name, gx, gy, gz, threads, shared);
  if (code) return code;
  look_at_pointers(it, arguments);
  return handed_over(it->name, it, stream);
}

API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                            CUstream stream, void **arguments, void **extra) {
  return launch_function((struct function *)f, gx, gy, gz, bx * by * bz, shared, stream, arguments);
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
  return launch_function((struct function *)f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX * c->blockDimY * c->blockDimZ,
                         c->sharedMemBytes, c->hStream, arguments);
}

/* What nvcc puts before main: the kernels of ATen and their names. */
struct known {
  const void *host;
  const char *name;
  struct known *next;
};
enum { BUCKETS = 1 << 16 };
static struct known *buckets[BUCKETS];

static struct known **bucket(const void *host) { return &buckets[(size_t)host / 16 % BUCKETS]; }

API void **__cudaRegisterFatBinary(void *image) {
  static void *handle[1];
  return handle;
}

API void __cudaRegisterFatBinaryEnd(void **handle) {}
API void __cudaUnregisterFatBinary(void **handle) {}
API char __cudaInitModule(void **handle) { return 1; }
API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size, int constant, int global) {}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *a, void *b, void *c,
                                void *d, int *e) {
  struct known *it = malloc(sizeof *it);
  it->host = host;
  it->name = name;
  it->next = *bucket(host);
  *bucket(host) = it;
}

static const char *name_of(const void *host) {
  for (struct known *it = *bucket(host); it; it = it->next)
    if (it->host == host) return it->name;
  return "unknown";
}

static __thread struct {
  dim3 grid, block;
  size_t shared;
  void *stream;
} pushed;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
  pushed.grid = grid;
  pushed.block = block;
  pushed.shared = shared;
  pushed.stream = stream;
  return 0;
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *(void **)stream = pushed.stream;
  return 0;
}

API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = (cudaKernel_t)host;
  return 0;
}

static int launch_aten(const void *host, dim3 g, dim3 b, size_t shared) {
  return sim_launch(name_of(host), g.x, g.y, g.z, b.x * b.y * b.z, shared);
}

API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream) {
  return launch_aten((void *)kernel, g, b, shared);
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream) {
  return launch_aten(host, g, b, shared);
}

API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **arguments) {
  return launch_aten(host, c->gridDim, c->blockDim, c->dynamicSmemBytes);
}

API cudaError_t cudaFuncGetName(const char **name, const void *host) {
  *name = name_of(host);
  return 0;
}

API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *it, const void *host) {
  memset(it, 0, sizeof *it);
  it->numRegs = 32;
  it->maxThreadsPerBlock = MANY_THREADS;
  it->binaryVersion = it->ptxVersion = sim_capability();
  return 0;
}

API cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute which, int value) { return 0; }

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads, size_t shared,
                                                                       unsigned flags) {
  *blocks = 2;
  return 0;
}
