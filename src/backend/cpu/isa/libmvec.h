/* Vector versions of the C library's functions: glibc's libmvec (within 4 units in the last place),
 * which the compiler calls in loops thanks to the attribute. Elsewhere loops call the scalar
 * functions. */
#ifndef KILN_BACKEND_CPU_ISA_LIBMVEC_H
#define KILN_BACKEND_CPU_ISA_LIBMVEC_H

#include <math.h>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define KILN_VECTOR __attribute__((const, simd("notinbranch")))
float expf(float) KILN_VECTOR;
float expm1f(float) KILN_VECTOR;
float logf(float) KILN_VECTOR;
float log1pf(float) KILN_VECTOR;
float powf(float, float) KILN_VECTOR;
float erff(float) KILN_VECTOR;
float sinf(float) KILN_VECTOR;
float cosf(float) KILN_VECTOR;
float tanhf(float) KILN_VECTOR;
float atan2f(float, float) KILN_VECTOR;
double exp(double) KILN_VECTOR;
double log(double) KILN_VECTOR;
#undef KILN_VECTOR
#endif
#endif

#endif
