/* libnvidia-ml.so.1, which torch asks for devices and for links between them: there are devices, and no links. */
#include "sim.h"

enum { NVML_NOT_SUPPORTED = 3 };

API int nvmlInit(void) { return 0; }
API int nvmlInit_v2(void) { return 0; }

API int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = sim_devices();
  return 0;
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  static int any;
  *device = &any;
  return 0;
}

API int nvmlDeviceGetGpuFabricInfoV(void *device, void *info) { return 0; } /* zeros, as the caller made it: no fabric */
API int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, void *type) { return NVML_NOT_SUPPORTED; }
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, void *info) { return NVML_NOT_SUPPORTED; }

API int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *processes) {
  *count = 0;
  return 0;
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  *version = (int)sim_number("SIMCUDA_DRIVER", CUDART_VERSION);
  return 0;
}
