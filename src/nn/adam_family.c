/* Shared by the optimizers with bias-corrected averages (Adam, AdamW, LAMB, Adan): the check of
 * `betas` and the corrections 1 - beta^t. */
#include <math.h>

#include "kiln/module.h"

KilnStatus kiln_adam_check_betas(const double *betas, size_t n, size_t want,
                                 const char **ret_option, KilnError *err)
{
    static const char *const names[] = { "betas[0]", "betas[1]", "betas[2]" };

    *ret_option = "betas";
    if (n != want)
        return kiln_error_set(err, KILN_E_RANGE, "expected %s, got %zu",
                              want == 2 ? "two numbers, such as [0.9, 0.999]"
                                        : "three numbers, such as [0.98, 0.92, 0.99]",
                              n);
    for (size_t i = 0; i < n; i++) {
        *ret_option = names[i];
        if (betas[i] >= 1.0)
            return kiln_error_set(err, KILN_E_RANGE, "expected a number from 0 to below 1, got %g",
                                  betas[i]);
    }
    return KILN_OK;
}

size_t kiln_adam_hyper(const double *betas, size_t n, double lr, int64_t step,
                       float ret[KILN_MAX_HYPER])
{
    ret[0] = (float)lr;
    for (size_t i = 0; i < n; i++)
        ret[i + 1] = (float)(1.0 - pow(betas[i], (double)step));
    return n + 1;
}
