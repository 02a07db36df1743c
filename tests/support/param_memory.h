/* Values of a parameter store in location, for tests on backends that compute in the host's memory.
 */
#ifndef KILN_TESTS_SUPPORT_PARAM_MEMORY_H
#define KILN_TESTS_SUPPORT_PARAM_MEMORY_H

#include <stdlib.h>

#include "nn/params.h"

/* A backend for stores of tests that run no step; it lives until the program ends. */
static inline KilnBackend *store_backend(void)
{
    static KilnBackend *backend;
    KilnError err = { 0 };

    if (backend == NULL && kiln_backend_ref_new(&backend, &err) < 0)
        abort();
    return backend;
}

/* The bytes of a location in a buffer, until the next step, to read or write them; NULL if there is
 * none. */
static inline void *location_data(KilnLocation location)
{
    return location.buffer != NULL ? kiln_buffer_host_view(location.buffer, location.offset) : NULL;
}

/* The bytes of a parameter or buffer; NULL before the store is sealed. */
static inline void *param_data(const KilnParam *param)
{
    return location_data(kiln_param_location(param));
}

/* All trained values and all gradients, [kiln_params_size]; NULL where the store keeps bf16. */
static inline float *params_values(const KilnParams *params)
{
    return params->dtype == KILN_F32 ? kiln_buffer_address(params->values, 0) : NULL;
}

static inline float *params_gradients(const KilnParams *params)
{
    return params->dtype == KILN_F32 ? kiln_buffer_address(params->gradients, 0) : NULL;
}

#endif
