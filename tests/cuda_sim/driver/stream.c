/* Streams, events, graph capture. Everything a stream is given is done at once; only faults wait. */
#include "sim.h"
#include <stdlib.h>

static cudaStream_t captured; /* one capture at a time */
static int capturing;
static unsigned long long captures;

int sim_capturing(void) { return capturing; }

static void *handle(void) { return calloc(1, 64); }

#define MAKES(signature, out) \
  API cudaError_t signature { GATE(); *out = handle(); return 0; }
MAKES(cudaStreamCreate(cudaStream_t *s), s)
MAKES(cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags), s)
MAKES(cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority), s)
MAKES(cudaEventCreate(cudaEvent_t *e), e)
MAKES(cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags), e)

#define PASSES(signature) \
  API cudaError_t signature { GATE(); return 0; }
PASSES(cudaStreamDestroy(cudaStream_t s))
PASSES(cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags))
PASSES(cudaEventRecord(cudaEvent_t e, cudaStream_t s))
PASSES(cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags))

#define WAITS(type, signature) \
  API type signature { GATE(); return sim_surface(); }
WAITS(cudaError_t, cudaStreamQuery(cudaStream_t s))
WAITS(cudaError_t, cudaStreamSynchronize(cudaStream_t s))
WAITS(cudaError_t, cudaEventQuery(cudaEvent_t e))
WAITS(cudaError_t, cudaEventSynchronize(cudaEvent_t e))
WAITS(CUresult, cuStreamSynchronize(CUstream s))
WAITS(CUresult, cuStreamQuery(CUstream s))

API cudaError_t cudaEventDestroy(cudaEvent_t e) {
  free(e);
  return 0;
}

API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = 0;
  return 0;
}

API cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) {
  *priority = 0;
  return 0;
}

API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return 0;
}

API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) { return 0; }

API cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
  GATE();
  if (!s) return sim_fail(900); /* the default stream cannot be captured */
  capturing = 1;
  captured = s;
  captures++;
  return 0;
}

API cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph) {
  GATE();
  capturing = 0;
  *graph = handle();
  return 0;
}

API cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
  GATE();
  *status = capturing && s == captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return 0;
}

API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
                                         const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count) {
  GATE();
  *status = capturing && s == captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id) *id = captures;
  if (count) *count = 0;
  return 0;
}

API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
  GATE();
  *made = handle();
  return 0;
}
PASSES(cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s))
PASSES(cudaGraphDestroy(cudaGraph_t graph))
PASSES(cudaGraphExecDestroy(cudaGraphExec_t graph))

API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  GATE();
  *count = 1;
  return 0;
}
