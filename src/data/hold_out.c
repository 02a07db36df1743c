/* Setting a part of a data set aside. */
#include "kiln/data.h"

#include <stdlib.h>

KilnStatus kiln_hold_out(int64_t n, int64_t held, uint64_t seed, int32_t *ret, KilnError *err)
{
    KilnRng rng;

    if (n < 0 || n > INT32_MAX || held < 0 || held > n)
        return kiln_error_set(err, KILN_E_RANGE, "%lld of %lld samples can't be set aside",
                              (long long)held, (long long)n);
    bool *held_out = calloc((size_t)n + 1, sizeof(*held_out));
    if (held_out == NULL)
        return kiln_error_nomem(err, (size_t)n);
    kiln_rng_init(&rng, seed, KILN_RNG_SPLIT, 0, 0);
    /* Floyd's sampling: as many different numbers as draws. */
    for (int64_t j = n - held; j < n; j++) {
        uint32_t pick = kiln_rng_below(&rng, (uint32_t)j + 1);

        held_out[held_out[pick] ? j : pick] = true;
    }
    for (int64_t i = 0, stay = 0, out = n - held; i < n; i++)
        ret[held_out[i] ? out++ : stay++] = (int32_t)i;
    free(held_out);
    return KILN_OK;
}
