/* Memory: a block of the "device" is a block of this process, so that copies are right. Fresh blocks hold zeros. */
#include "sim.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };
struct block {
  char *start;
  size_t size;
  int host;
  struct block *next;
};

static struct block *blocks;
static size_t used;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static size_t total(void) { return sim_number("SIMCUDA_MEMORY", 8ll << 30); }

static struct block *holding(const void *address) {
  struct block *it;
  pthread_mutex_lock(&guard);
  for (it = blocks; it; it = it->next)
    if ((const char *)address >= it->start && (const char *)address < it->start + it->size) break;
  pthread_mutex_unlock(&guard);
  return it;
}

int sim_owns(unsigned long long address) {
  struct block *it = holding((void *)address);
  return !it ? 0 : it->host ? 2 : 1;
}

int sim_beyond(unsigned long long address, size_t bytes) {
  struct block *it = holding((void *)address);
  return it && (char *)address + bytes >= it->start + it->size;
}

/* The block that ends last before the address, or holds it. */
void sim_nearest(unsigned long long address, unsigned long long *start, size_t *size) {
  *start = *size = 0;
  pthread_mutex_lock(&guard);
  for (struct block *it = blocks; it; it = it->next)
    if ((size_t)it->start <= address && (size_t)it->start >= *start) {
      *start = (size_t)it->start;
      *size = it->size;
    }
  pthread_mutex_unlock(&guard);
}

/* Memory that virtual.c maps: counted when it is made, known as the device's while it is mapped. */
int sim_account(long long size) {
  int fits;
  pthread_mutex_lock(&guard);
  fits = size <= 0 || used + size <= total();
  if (fits) used += size;
  pthread_mutex_unlock(&guard);
  return fits;
}

void sim_adopt(void *start, size_t size) {
  struct block *it = malloc(sizeof *it);
  *it = (struct block){.start = start, .size = size};
  pthread_mutex_lock(&guard);
  it->next = blocks;
  blocks = it;
  pthread_mutex_unlock(&guard);
}

static struct block *unlinked(void *start) {
  struct block **at, *it;
  pthread_mutex_lock(&guard);
  for (at = &blocks; *at && (*at)->start != start; at = &(*at)->next) {}
  if ((it = *at)) *at = it->next;
  pthread_mutex_unlock(&guard);
  return it;
}

void sim_disown(void *start) { free(unlinked(start)); }

static int take(void **out, size_t size, int host) {
  struct block *it = NULL;
  pthread_mutex_lock(&guard);
  if ((host || used + size <= total()) && (it = malloc(sizeof *it))) {
    it->size = size ? size : 1;
    it->host = host;
    it->start = aligned_alloc(PAGE, (it->size + PAGE - 1) / PAGE * PAGE);
    memset(it->start, 0, it->size);
    it->next = blocks;
    blocks = it;
    if (!host) used += it->size;
  }
  pthread_mutex_unlock(&guard);
  *out = it ? it->start : NULL;
  return it ? 0 : sim_fail(2);
}

static int release(void *start) {
  struct block *it = start ? unlinked(start) : NULL;
  if (start && !it) return sim_fail(1);
  if (it && !it->host) sim_account(-(long long)it->size);
  if (it) free(it->start);
  free(it);
  return sim_fail(sim_sticky());
}

API cudaError_t cudaMalloc(void **out, size_t size) {
  GATE();
  return take(out, size, 0);
}

API cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream) {
  GATE();
  return take(out, size, 0);
}

API cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags) {
  GATE();
  return take(out, size, 1);
}

API CUresult cuMemAlloc(CUdeviceptr *out, size_t size) {
  GATE();
  return take((void **)out, size, 0);
}

API cudaError_t cudaFree(void *start) { return release(start); }
API cudaError_t cudaFreeAsync(void *start, cudaStream_t stream) { return release(start); }
API cudaError_t cudaFreeHost(void *start) { return release(start); }
API CUresult cuMemFree(CUdeviceptr start) { return release((void *)start); }

API cudaError_t cudaHostRegister(void *start, size_t size, unsigned flags) {
  GATE();
  return 0;
}

API cudaError_t cudaHostUnregister(void *start) {
  GATE();
  return 0;
}

API cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
  *all = total();
  *left = *all - used;
  GATE();
  return 0;
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
  int code = sim_surface();
  GATE();
  if (!code) memcpy(to, from, size);
  return code;
}

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
  GATE();
  memcpy(to, from, size);
  return 0;
}

API cudaError_t cudaMemcpyPeerAsync(void *to, int device, const void *from, int peer, size_t size, cudaStream_t stream) {
  GATE();
  memcpy(to, from, size);
  return 0;
}

API cudaError_t cudaMemset(void *to, int value, size_t size) {
  GATE();
  memset(to, value, size);
  return 0;
}

API cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
  GATE();
  memset(to, value, size);
  return 0;
}

API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
  GATE();
  memcpy((void *)to, from, size);
  return 0;
}

API CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
  int code = sim_surface();
  if (!code) memcpy(to, (void *)from, size);
  return code;
}

API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *it, const void *address) {
  int owner = sim_owns((unsigned long long)address);
  memset(it, 0, sizeof *it);
  it->device = owner == 1 ? 0 : -1;
  it->type = owner == 1 ? cudaMemoryTypeDevice : owner == 2 ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  it->devicePointer = owner ? (void *)address : NULL;
  it->hostPointer = owner == 2 ? (void *)address : NULL;
  return 0;
}

API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr address) {
  int owner = sim_owns(address);
  if (!owner) return 1;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = address; return 0;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)data = owner == 1 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; return 0;
    default: return 801;
  }
}

API cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  static char zeros[1 << 16];
  *address = zeros;
  return 0;
}

API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, enum cudaMemcpyKind kind) {
  return 0;
}
