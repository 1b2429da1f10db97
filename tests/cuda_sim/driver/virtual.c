/* Memory in two steps, as PyTorch's expandable segments ask for it: addresses are reserved, memory is mapped there. */
#include "sim.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { GRANULE = 2 << 20 };

struct piece {
  size_t size;
};

API CUresult cuMemGetAllocationGranularity(size_t *size, const CUmemAllocationProp *kind, CUmemAllocationGranularity_flags wish) {
  *size = GRANULE;
  return 0;
}

API CUresult cuMemAddressReserve(CUdeviceptr *start, size_t size, size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  void *room;
  GATE();
  room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *start = (CUdeviceptr)room;
  return room == MAP_FAILED ? sim_fail(2) : 0;
}

API CUresult cuMemAddressFree(CUdeviceptr start, size_t size) {
  munmap((void *)start, size);
  return sim_fail(sim_sticky());
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *kind, unsigned long long flags) {
  struct piece *it;
  GATE();
  if (!sim_account((long long)size)) return sim_fail(2);
  it = malloc(sizeof *it);
  it->size = size;
  *handle = (CUmemGenericAllocationHandle)it;
  return 0;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  struct piece *it = (struct piece *)handle;
  sim_account(-(long long)it->size);
  free(it);
  return sim_fail(sim_sticky());
}

API CUresult cuMemMap(CUdeviceptr start, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
  GATE();
  if (mprotect((void *)start, size, PROT_READ | PROT_WRITE)) return sim_fail(1);
  sim_adopt((void *)start, size);
  return 0;
}

API CUresult cuMemUnmap(CUdeviceptr start, size_t size) {
  sim_disown((void *)start);
  mprotect((void *)start, size, PROT_NONE);
  return sim_fail(sim_sticky());
}

API CUresult cuMemSetAccess(CUdeviceptr start, size_t size, const CUmemAccessDesc *who, size_t count) { return 0; }
