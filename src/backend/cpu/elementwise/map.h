/* Runs maps (graph/map.h) on the CPU: elementwise kernels, and the epilogues fused to other
 * kernels. prepare decides everything; a run only computes. */
#ifndef KILN_BACKEND_CPU_ELEMENTWISE_MAP_H
#define KILN_BACKEND_CPU_ELEMENTWISE_MAP_H

#include "graph/backend.h"

/* Elements that pass through all steps together. */
enum { KILN_MAP_TILE = 1024 };

/* ---- Epilogues, for kernels with `.epilogue = true` ------------------------------
 * In prepare, when the layout of output 0 is settled and as the last that can
 * fail: kiln_cpu_epilogue_prepare. While running, for every piece of output 0 once
 * it is computed: kiln_cpu_epilogue. In release: kiln_cpu_epilogue_release. All do
 * nothing for a call without an epilogue. */

/* Whether the epilogue supports this layout of output 0. Plain order always works. */
bool kiln_cpu_epilogue_fits(const KilnCall *call, KilnLayout layout);
/* Sets the layouts of the inputs and outputs after the operation's own. */
KILN_NODISCARD KilnStatus kiln_cpu_epilogue_prepare(KilnCall *call, KilnError *err);
/* Runs it on elements begin ... begin + n - 1 of output 0, in memory order. tile[0 ... n - 1] holds
 * the operation's own result as floats, and may be the bytes of an f32 output 0. Several threads
 * may work on different elements. */
void kiln_cpu_epilogue(const KilnCall *call, const float *tile, int64_t begin, int64_t n);
void kiln_cpu_epilogue_release(KilnCall *call);

/* ---- Elementwise kernels ----------------------------------------------------------- */

/* prepare, run and release of every operation with a map rule, and of `map`. */
KILN_NODISCARD KilnStatus kiln_cpu_map_prepare(KilnCall *call, KilnError *err);
void kiln_cpu_map_run(KilnCall *call);
void kiln_cpu_map_release(KilnCall *call);

#endif
