/* Runs maps on the CPU: elementwise kernels, and what is fused to the end of
 * others (epilogues). Everything is decided in prepare; a run only computes. */
#ifndef KILN_BACKEND_CPU_ELEMENTWISE_MAP_H
#define KILN_BACKEND_CPU_ELEMENTWISE_MAP_H

#include "graph/backend.h"

/* Elements that go through all steps at a time. */
enum { KILN_MAP_TILE = 1024 };

/* ---- Epilogues, for kernels with `.epilogue = true` ------------------------------
 * In prepare, when the layout of output 0 is settled and as the last that can
 * fail: kiln_cpu_epilogue_prepare. While running, for every piece of output 0 once
 * it is computed: kiln_cpu_epilogue. In release: kiln_cpu_epilogue_release. All do
 * nothing for a call without an epilogue. */

/* Whether the epilogue can run when output 0 has this layout. It always can in
 * plain order. */
bool kiln_cpu_epilogue_fits(const KilnCall *call, KilnLayout layout);
/* Sets the layouts of the inputs and outputs after the operation's own. */
KILN_NODISCARD KilnStatus kiln_cpu_epilogue_prepare(KilnCall *call, KilnError *err);
/* Run it on elements begin ... begin + n - 1 of output 0, counted in its order in
 * memory. tile[0 ... n - 1] is what the operation gives there, as floats; it may be
 * the very bytes of an f32 output 0. Threads may work on different elements. */
void kiln_cpu_epilogue(const KilnCall *call, const float *tile, int64_t begin, int64_t n);
void kiln_cpu_epilogue_release(KilnCall *call);

/* ---- Elementwise kernels ----------------------------------------------------------- */

/* prepare, run and release of every operation with a map rule, and of `map`. */
KILN_NODISCARD KilnStatus kiln_cpu_map_prepare(KilnCall *call, KilnError *err);
void kiln_cpu_map_run(KilnCall *call);
void kiln_cpu_map_release(KilnCall *call);

#endif
