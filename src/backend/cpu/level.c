/* Detects processor features. This is the only place that asks the processor, so that KILN_ISA caps
 * everything. */
#include "backend/cpu/level.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/bf16/tiles.h"
#include "base/text.h"

static const char *const names[KILN_CPU_LEVELS] = {
    [KILN_CPU_BASE] = "base",     [KILN_CPU_AVX2] = "avx2",
    [KILN_CPU_AVX512] = "avx512", [KILN_CPU_AVX512_BF16] = "avx512_bf16",
    [KILN_CPU_AMX] = "amx",
};

const char *kiln_cpu_level_name(KilnCpuLevel level)
{
    return names[level];
}

#if defined(__x86_64__)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

/* Intel's processors with AMX multiply bf16 with vdpbf16ps at half the speed of f32, others at
 * twice. This matters where the operating system withholds AMX. */
static bool bf16_pays(void)
{
    return __builtin_cpu_is("amd") || __builtin_cpu_is("cooperlake");
}

KilnCpuLevel kiln_cpu_level_highest(void)
{
    static bool (*const has[KILN_CPU_LEVELS])(void) = {
        [KILN_CPU_AVX2] = has_avx2,
        [KILN_CPU_AVX512] = has_avx512,
        [KILN_CPU_AVX512_BF16] = has_avx512_bf16,
        [KILN_CPU_AMX] = kiln_amx_usable,
    };
    int level = KILN_CPU_BASE;

    __builtin_cpu_init();
    while (level + 1 < KILN_CPU_LEVELS && has[level + 1]())
        level++;
    return (KilnCpuLevel)level;
}

#else

static bool bf16_pays(void)
{
    return false;
}

KilnCpuLevel kiln_cpu_level_highest(void)
{
    return KILN_CPU_BASE;
}

#endif

static KilnStatus refuse(const char *requested, KilnCpuLevel highest, KilnError *err)
{
    KilnText list = { 0 };
    bool known = false;

    for (int level = 0; level <= KILN_CPU_TOP; level++) {
        known = known || strcmp(requested, names[level]) == 0;
        if (level <= (int)highest)
            kiln_text_printf(&list, "%s%s", level > 0 ? ", " : "", names[level]);
    }
    if (list.failed)
        return kiln_error_nomem(err, list.capacity);
    kiln_error_set(err, KILN_E_RANGE, "environment variable KILN_ISA=%s: %s; %s %s", requested,
                   known ? "this processor does not have that" : "there is no such level",
                   "expected one of", list.data);
    kiln_text_release(&list);
    return KILN_E_RANGE;
}

KilnStatus kiln_cpu_level_choose(KilnCpuLevel *ret_level, bool *ret_capped, KilnError *err)
{
    const KilnCpuLevel highest = kiln_cpu_level_highest();
    const char *requested = getenv("KILN_ISA");

    *ret_capped = requested != NULL && requested[0] != '\0';
    if (!*ret_capped) {
        *ret_level = highest == KILN_CPU_AVX512_BF16 && !bf16_pays() ? KILN_CPU_AVX512 : highest;
        return KILN_OK;
    }
    for (int level = 0; level <= (int)highest; level++)
        if (strcmp(requested, names[level]) == 0) {
            *ret_level = (KilnCpuLevel)level;
            return KILN_OK;
        }
    return refuse(requested, highest, err);
}
