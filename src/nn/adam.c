/* What the members of Adam's family share. */
#include <math.h>

#include "kiln/module.h"

KilnStatus kiln_adam_check_betas(const double *betas, size_t n, const char **ret_option,
                                 KilnError *err)
{
    static const char *const names[] = { "betas[0]", "betas[1]" };

    *ret_option = "betas";
    if (n != 2)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected two numbers, such as [0.9, 0.999], got %zu", n);
    for (size_t i = 0; i < 2; i++) {
        *ret_option = names[i];
        if (betas[i] >= 1.0)
            return kiln_error_set(err, KILN_E_RANGE, "expected a number from 0 to below 1, got %g",
                                  betas[i]);
    }
    return KILN_OK;
}

size_t kiln_adam_hyper(const double *betas, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    ret[0] = (float)lr;
    ret[1] = (float)(1.0 - pow(betas[0], (double)step));
    ret[2] = (float)(1.0 - pow(betas[1], (double)step));
    return 3;
}
