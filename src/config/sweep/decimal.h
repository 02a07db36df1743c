/* Sums of decimal numbers. range(0,1,0.1) must end where Hydra's does, which adds the steps with
 * Python's decimal module, not as doubles. */
#ifndef KILN_CONFIG_SWEEP_DECIMAL_H
#define KILN_CONFIG_SWEEP_DECIMAL_H

#include "kiln/base.h"

/* Digits before the point and in all; every finite double is exact. */
enum { KILN_DECIMAL_WHOLE = 320, KILN_DECIMAL_DIGITS = KILN_DECIMAL_WHOLE + 1080 };

typedef struct KilnDecimal {
    bool negative;
    unsigned char digits[KILN_DECIMAL_DIGITS]; /* 0..9, the highest first */
} KilnDecimal;

/* The exact value of a finite double. */
void kiln_decimal_set(KilnDecimal *decimal, double value);
/* Add `more`, and round to 28 digits, half to even. */
void kiln_decimal_add(KilnDecimal *decimal, const KilnDecimal *more);
/* < 0, 0, > 0 */
int kiln_decimal_compare(const KilnDecimal *a, const KilnDecimal *b);
/* The double nearest to a sum. */
double kiln_decimal_get(const KilnDecimal *decimal);

/* The number with its first 12 decimal digits: 0.1 + 2 * 0.1 becomes 0.3. */
double kiln_decimal_round(double value);

#endif
