/* Matrix products by OpenBLAS, which is loaded at first use, so that programs that never need it
 * start as fast without it and run where it is not installed. It computes the parts that kiln's own
 * threads take.
 * No header of it is needed: blas.c declares what it calls. */
#ifndef KILN_BACKEND_CPU_BLAS_H
#define KILN_BACKEND_CPU_BLAS_H

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/level.h"

/* Selects the kernels that OpenBLAS will use: those for the level's processor features, for an
 * OpenBLAS that is older than the processor would take those of SSE3. The user's OPENBLAS_CORETYPE
 * comes first. At the lowest level OpenBLAS chooses unless `capped`, since it may know AVX; on
 * ARM64 always. No effect once it is loaded. */
void kiln_blas_choose(KilnCpuLevel level, bool capped);
/* Loads OpenBLAS if it is not loaded yet; false: it is not installed. Any thread, but the first
 * call changes environment variables for a moment. */
bool kiln_blas_load(void);
/* After a successful load: "OpenBLAS 0.3.21 Haswell", the version and the processor whose kernels
 * it chose. Static. */
const char *kiln_blas_version(void);
/* KILN_E_IO with the package to install, unless OpenBLAS can be loaded; `use` begins the message:
 * "trainer.precision=64-true". */
KILN_NODISCARD KilnStatus kiln_blas_require(const char *use, KilnError *err);

/* Have room for the products of so many threads at a time: OpenBLAS takes 128 MiB of addresses for
 * each, and tries for ever where a limit (RLIMIT_AS) leaves fewer. KILN_E_NOMEM with what is
 * missing. After a successful load. */
KILN_NODISCARD KilnStatus kiln_blas_reserve(int threads, KilnError *err);

/* One product on the calling thread: f32 or f64 matrices, after a successful load. */
void kiln_blas_product(const KilnGemm *gemm, KilnDType dtype, const void *a, const void *b,
                       void *c);
/* The same by `threads` threads, calling `done` (may be NULL) as for kiln_gemm_then. */
void kiln_blas_gemm(int threads, const KilnGemm *gemm, KilnDType dtype, const void *a,
                    const void *b, void *c, KilnGemmDone *done, void *context);

#endif
