/* LSTM and GRU of f64: what forward and backward share. */
#ifndef KILN_BACKEND_CPU_F64_RECURRENT_H
#define KILN_BACKEND_CPU_F64_RECURRENT_H

#include "backend/cpu/blas.h"
#include "backend/cpu/f64/f64.h"

/* One call. Row (t, b) of a sequence is t * step + b * row. */
typedef struct KilnF64Recurrent {
    const KilnCall *call;
    int64_t gates; /* 4: LSTM, 3: GRU */
    int64_t hidden, steps, batch, step, row;
    bool reverse;
    const int32_t *lengths; /* or NULL */
    const double *weight;
} KilnF64Recurrent;

KilnF64Recurrent kiln_f64_recurrent(const KilnCall *call, const KilnArg *y, const KilnArg *weight,
                                    const KilnArg *lengths);

static inline int64_t kiln_f64_row(const KilnF64Recurrent *r, int64_t t, int64_t b)
{
    return t * r->step + b * r->row;
}

static inline bool kiln_f64_active(const KilnF64Recurrent *r, int64_t t, int64_t b)
{
    return r->lengths == NULL || t < r->lengths[b];
}

#endif
