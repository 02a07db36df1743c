/* Values of a parameter store in place, for tests on backends that compute in the host's memory. */
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

/* The bytes of a place in a buffer; NULL if there is none. */
static inline void *place_data(KilnPlace place)
{
    return place.buffer != NULL ? kiln_buffer_address(place.buffer, place.offset) : NULL;
}

/* The bytes of a parameter or buffer; NULL before the store is sealed. */
static inline void *param_data(const KilnParam *param)
{
    return place_data(kiln_param_place(param));
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
