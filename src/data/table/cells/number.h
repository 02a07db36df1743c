/* Reads decimal numbers exactly as strtod does, eight digits at a time. Inline, since most of the
 * time that a table takes to read goes here. */
#ifndef KILN_DATA_TABLE_NUMBER_H
#define KILN_DATA_TABLE_NUMBER_H

#include <string.h>

#include "kiln/files/text_records.h"

/* With at most so many digits both the digits and the power of 10 are exact doubles. */
enum { KILN_EXACT_DIGITS = 15 };
extern const double kiln_powers_of_10[KILN_EXACT_DIGITS + 1];

/* The next eight bytes, the first in the lowest bits; those at `end` and after are no digits. */
static inline uint64_t kiln_bytes_eight(const char *at, const char *end)
{
    uint64_t bytes = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (end - at >= 8) {
        memcpy(&bytes, at, sizeof(bytes));
        return bytes;
    }
#endif
    for (int i = 0; i < 8 && at + i < end; i++)
        bytes |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return bytes;
}

/* The number of eight digits, which are values 0 to 9, the first in the lowest bits: pairs, then
 * fours, then all, in three multiplications (Lemire, "Number parsing at a gigabyte per second",
 * 2021). */
static inline uint64_t kiln_digits_eight(uint64_t digits)
{
    const uint64_t mask = 0x000000ff000000ff;

    digits = digits * 10 + (digits >> 8);
    return ((digits & mask) * (100 + (UINT64_C(1000000) << 32)) +
            ((digits >> 16) & mask) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* Append the digits at `at` to *value; returns where they end. More than 19 overflow. */
static inline const char *kiln_digits_take(const char *at, const char *end, uint64_t *value)
{
    static const uint64_t powers[] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000
    };

    for (;;) {
        const uint64_t digits = kiln_bytes_eight(at, end) ^ 0x3030303030303030;
        const uint64_t others = (digits | (digits + 0x7676767676767676)) & 0x8080808080808080;

        if (others != 0) {
            const int n = __builtin_ctzll(others) / 8;

            *value = *value * powers[n] + kiln_digits_eight((digits << (8 * (7 - n))) << 8);
            return at + n;
        }
        *value = *value * powers[8] + kiln_digits_eight(digits);
        at += 8;
    }
}

/* The digits of a number, without its point. */
typedef struct KilnDigits {
    uint64_t value; /* right up to 19 digits */
    int64_t n, n_fraction;
} KilnDigits;

/* The rest of kiln_number_read for numbers with more digits, or an exponent. `first` is the first
 * digit; *ret are the bits, without a sign. */
const char *kiln_number_read_long(const char *first, const char *after_digits, const char *end,
                                  char decimal, const KilnDigits *digits, uint64_t *ret);

/* Read the number at `at`; returns where it ends. NULL: there is none, it has an unusual form, or
 * it does not fit. `end` is that of the bytes that can be read.
 *
 * The numbers of a column mostly have as many digits before the point, which a processor learns,
 * but not after it; and their signs are in no order at all. So those are no branches. */
static inline const char *kiln_number_read(const char *at, const char *end, char decimal,
                                           double *ret)
{
    const char sign = at < end ? *at : '0';
    const char *const first = at + ((sign == '-') | (sign == '+')), *p = first;
    KilnDigits digits = { 0 };
    uint64_t bits;

    while (p < end && (unsigned char)(*p - '0') < 10)
        digits.value = digits.value * 10 + (uint64_t)(*p++ - '0');
    digits.n = p - first;
    if (p < end && *p == decimal) {
        const char *const fraction = p + 1;

        p = kiln_digits_take(fraction, end, &digits.value);
        digits.n_fraction = p - fraction;
        digits.n += digits.n_fraction;
    }
    if (digits.n == 0)
        return NULL;
    if (digits.n > KILN_EXACT_DIGITS || (p < end && (*p | 0x20) == 'e')) {
        p = kiln_number_read_long(first, p, end, decimal, &digits, &bits);
    } else {
        /* Clinger, "How to read floating point numbers accurately" (1990) */
        const double exact = (double)(int64_t)digits.value;
        const double number = digits.n_fraction == 0 ? exact
                                                     : exact / kiln_powers_of_10[digits.n_fraction];
        memcpy(&bits, &number, sizeof(bits));
    }
    bits |= (uint64_t)(sign == '-') << 63;
    memcpy(ret, &bits, sizeof(bits));
    return p;
}

/* Whether the whole text is a number. (number.c) */
bool kiln_number_is(KilnString text, char decimal, double *ret);

#endif
