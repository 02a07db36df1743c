/* Private to the processor's backend in double precision. To make an operation fast in f64: write
 * its kernel here and add its table to f64.c; the reference's kernels compute all others. */
#ifndef KILN_BACKEND_CPU_F64_H
#define KILN_BACKEND_CPU_F64_H

#include "backend/cpu/cpu.h"

extern const KilnCpuTable kiln_f64_products, kiln_f64_convolution, kiln_f64_recurrent_forward,
    kiln_f64_recurrent_backward;

#endif
