/* Devices, contexts, versions. Context and device handles carry no state: there is one context per device. */
#include "sim.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static __thread int current;

static const struct {
  int attribute, value;
} ATTRIBUTES[] = {
    {cudaDevAttrMaxThreadsPerBlock, MANY_THREADS},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, SHARED_DEFAULT},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, SHARED_OPT_IN},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, SHARED_OPT_IN + 1024},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMultiProcessorCount, MULTIPROCESSORS},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrClockRate, 1000000},
};

static int attribute(int *value, int which) {
  *value = 0;
  if (which == cudaDevAttrComputeCapabilityMajor) *value = sim_capability() / 10;
  if (which == cudaDevAttrComputeCapabilityMinor) *value = sim_capability() % 10;
  for (size_t i = 0; i < sizeof ATTRIBUTES / sizeof *ATTRIBUTES; i++)
    if (ATTRIBUTES[i].attribute == which) *value = ATTRIBUTES[i].value;
  return 0;
}

static int known(int device) { return device >= 0 && device < sim_devices(); }

API cudaError_t cudaGetDeviceCount(int *count) {
  *count = sim_devices();
  GATE();
  return 0;
}

API cudaError_t cudaGetDevice(int *device) {
  *device = current;
  if (sim_sticky() && !sim_number("SIMCUDA_STICKY_GETDEVICE", 0)) return 0;
  GATE();
  return 0;
}

API cudaError_t cudaSetDevice(int device) {
  if (sim_devices() && !known(device)) return sim_fail(101);
  current = device;
  GATE();
  return 0;
}

API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  GATE();
  if (!known(device)) return sim_fail(101);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "simulated CUDA sm_%d", sim_capability());
  p->major = sim_capability() / 10;
  p->minor = sim_capability() % 10;
  p->totalGlobalMem = sim_number("SIMCUDA_MEMORY", 8ll << 30);
  p->multiProcessorCount = MULTIPROCESSORS;
  p->warpSize = 32;
  p->maxThreadsPerBlock = MANY_THREADS;
  p->maxThreadsPerMultiProcessor = 2048;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->sharedMemPerBlock = SHARED_DEFAULT;
  p->sharedMemPerBlockOptin = SHARED_OPT_IN;
  p->sharedMemPerMultiprocessor = SHARED_OPT_IN + 1024;
  p->l2CacheSize = 32 << 20;
  p->unifiedAddressing = 1;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  return 0;
}

API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device) { return attribute(value, which); }
API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) { return attribute(value, which); }

static int served(int *version) {
  *version = (int)sim_number("SIMCUDA_DRIVER", CUDART_VERSION);
  return 0;
}

API cudaError_t cudaDriverGetVersion(int *version) { return served(version); }
API CUresult cuDriverGetVersion(int *version) { return served(version); }

API cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return 0;
}

API cudaError_t cudaDeviceSynchronize(void) {
  GATE();
  return sim_surface();
}

API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = 0;
  return 0;
}

API cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  snprintf(text, size, "0000:%02x:00.0", device);
  return 0;
}

API CUresult cuInit(unsigned flags) { return sim_devices() ? 0 : 100; }

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return known(ordinal) ? 0 : 101;
}

API CUresult cuDeviceGetCount(int *count) {
  *count = sim_devices();
  return 0;
}

API CUresult cuDeviceGetName(char *text, int size, CUdevice device) {
  snprintf(text, size, "simulated CUDA sm_%d", sim_capability());
  return 0;
}

API CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = (CUcontext)(size_t)(current + 1);
  return 0;
}

API CUresult cuCtxSetCurrent(CUcontext context) {
  if (context) current = (int)(size_t)context - 1;
  return 0;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
  *device = current;
  return 0;
}

API CUresult cuCtxSynchronize(void) {
  GATE();
  return sim_surface();
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)(size_t)(device + 1);
  return 0;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  *flags = 0;
  *active = known(device);
  return 0;
}

/* Private tables of NVIDIA's own libraries: refused, not imitated. */
API CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  *table = NULL;
  return 801;
}

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version, unsigned long long flags,
                                                 enum cudaDriverEntryPointQueryResult *result) {
  char second[160];
  snprintf(second, sizeof second, "%s_v2", name);
  *entry = dlsym(RTLD_DEFAULT, second);
  if (!*entry) *entry = dlsym(RTLD_DEFAULT, name);
  if (result) *result = *entry ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return 0;
}
