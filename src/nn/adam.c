/* What the members of Adam's family share. */
#include <math.h>

#include "kiln/module.h"

KilnStatus kiln_adam_check_betas(const double *betas, size_t n, KilnError *err)
{
    if (n != 2)
        return kiln_error_set(err, KILN_E_RANGE,
                              "betas has %zu values; give two, such as [0.9, 0.999]", n);
    for (size_t i = 0; i < 2; i++)
        if (betas[i] >= 1.0)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "betas[%zu] is %g; it must be at least 0 and below 1", i,
                                  betas[i]);
    return KILN_OK;
}

size_t kiln_adam_hyper(const double *betas, double lr, int64_t step, float ret[KILN_MAX_HYPER])
{
    ret[0] = (float)lr;
    ret[1] = (float)(1.0 - pow(betas[0], (double)step));
    ret[2] = (float)(1.0 - pow(betas[1], (double)step));
    return 3;
}
