/* The table of kernel families. A kernel for a new level is a text here and a branch where its
 * family is dispatched. */
#include "backend/cpu/families.h"

#if defined(__x86_64__)
#define BASE_LOOPS "sse2"
#elif defined(__aarch64__)
#define BASE_LOOPS "neon"
#else
#define BASE_LOOPS "generic"
#endif

const KilnCpuFamilyInfo kiln_cpu_families[KILN_CPU_FAMILIES] = {
    [KILN_CPU_LOOPS] = { "loops over vectors",
                         {
                             [KILN_CPU_BASE] = BASE_LOOPS,
                             [KILN_CPU_AVX2] = "avx2",
                             [KILN_CPU_AVX512] = "avx512",
                         } },
    [KILN_CPU_PRODUCTS] = { "f32 products",
                            {
                                [KILN_CPU_BASE] = "OpenBLAS if installed",
                                [KILN_CPU_AVX2] = "loops",
                            } },
    [KILN_CPU_PRODUCTS_BF16] = { "bf16 products",
                                 {
                                     [KILN_CPU_BASE] = "f32 products",
                                     [KILN_CPU_AVX512_BF16] = "vdpbf16ps",
                                     [KILN_CPU_AMX] = "tiles",
                                 } },
    [KILN_CPU_ATTENTION_BF16] = { "bf16 attention",
                                  {
                                      [KILN_CPU_BASE] = "f32 attention",
                                      [KILN_CPU_AVX512_BF16] = "vdpbf16ps",
                                      [KILN_CPU_AMX] = "tiles",
                                  } },
    [KILN_CPU_RECURRENT_BF16] = { "bf16 LSTM and GRU",
                                  {
                                      [KILN_CPU_BASE] = "f32 LSTM and GRU",
                                      [KILN_CPU_AVX512_BF16] = "vdpbf16ps",
                                      [KILN_CPU_AMX] = "tiles",
                                  } },
    [KILN_CPU_CONVOLUTIONS] = { "convolutions",
                                {
                                    [KILN_CPU_BASE] = "Winograd in loops, oneDNN",
                                    [KILN_CPU_AVX2] = "Winograd in loops, oneDNN by 8 channels",
                                    [KILN_CPU_AVX512] = "Winograd in loops, oneDNN by 16 channels",
                                } },
    [KILN_CPU_CONVOLUTIONS_BF16] = { "bf16 convolutions",
                                     {
                                         [KILN_CPU_BASE] = "f32 convolutions",
                                         [KILN_CPU_AVX512_BF16] = "vdpbf16ps, oneDNN",
                                         [KILN_CPU_AMX] = "tiles, oneDNN",
                                     } },
};

KilnCpuLevel kiln_cpu_kernels(KilnCpuFamily family, KilnCpuLevel level)
{
    while (kiln_cpu_families[family].kernels[level] == NULL)
        level--;
    return level;
}
