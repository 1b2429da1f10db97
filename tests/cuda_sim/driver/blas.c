/* cuBLAS: single-precision products are computed, on the host; anything else says that it is not supported. */
#include "sim.h"
#include <stdlib.h>

enum { NOT_INITIALIZED = 1, EXECUTION_FAILED = 13 };

API int cublasCreate_v2(void **handle) {
  if (sim_gate(__func__)) return NOT_INITIALIZED;
  *handle = calloc(1, 64);
  return 0;
}

/* Column-major: element (row, column) of a matrix with leading dimension ``lead``. */
static float at(const float *matrix, int lead, int transposed, int row, int column) {
  return transposed ? matrix[column + (size_t)row * lead] : matrix[row + (size_t)column * lead];
}

API int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
                       int ldb, const float *beta, float *c, int ldc) {
  if (sim_launch(__func__, 1, 1, 1, 128, 0)) return EXECUTION_FAILED;
  for (int column = 0; column < n; column++)
    for (int row = 0; row < m; row++) {
      float *out = c + row + (size_t)column * ldc, sum = 0;
      for (int i = 0; i < k; i++) sum += at(a, lda, ta, row, i) * at(b, ldb, tb, i, column);
      *out = *alpha * sum + (*beta == 0 ? 0 : *beta * *out);
    }
  return 0;
}

API int cublasGetMathMode(void *handle, int *mode) { return *mode = 0; }
API int cublasGetPointerMode_v2(void *handle, int *mode) { return *mode = 0; }

API int cublasGetStream_v2(void *handle, void **stream) {
  *stream = NULL;
  return 0;
}

API const char *cublasGetStatusString(int status) { return "simulated cuBLAS status"; }
