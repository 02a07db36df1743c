/* Reads decimal numbers of many digits, and those with exponents, and rounds them as strtod does.
 */
#include "data/table/cells/number.h"

#include <float.h>
#include <math.h>

#include "base/parse.h"

enum { MAX_DIGITS = 19, KNOWN_POWER = 32, LONGEST = 400 };

/* ---- Scaling --------------------------------------------------------------------------------- */

const double kiln_powers_of_10[KILN_EXACT_DIGITS + 1] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
};

/* The first 128 bits of 5^-32 to 5^32, high and low; of negative powers rounded up. */
/* clang-format off */
static const uint64_t powers_of_5[2 * KNOWN_POWER + 1][2] = {
    { 0xcfb11ead453994ba, 0x67de18eda5814af2 }, { 0x81ceb32c4b43fcf4, 0x80eacf948770ced7 },
    { 0xa2425ff75e14fc31, 0xa1258379a94d028d }, { 0xcad2f7f5359a3b3e, 0x096ee45813a04330 },
    { 0xfd87b5f28300ca0d, 0x8bca9d6e188853fc }, { 0x9e74d1b791e07e48, 0x775ea264cf55347e },
    { 0xc612062576589dda, 0x95364afe032a819e }, { 0xf79687aed3eec551, 0x3a83ddbd83f52205 },
    { 0x9abe14cd44753b52, 0xc4926a9672793543 }, { 0xc16d9a0095928a27, 0x75b7053c0f178294 },
    { 0xf1c90080baf72cb1, 0x5324c68b12dd6339 }, { 0x971da05074da7bee, 0xd3f6fc16ebca5e04 },
    { 0xbce5086492111aea, 0x88f4bb1ca6bcf585 }, { 0xec1e4a7db69561a5, 0x2b31e9e3d06c32e6 },
    { 0x9392ee8e921d5d07, 0x3aff322e62439fd0 }, { 0xb877aa3236a4b449, 0x09befeb9fad487c3 },
    { 0xe69594bec44de15b, 0x4c2ebe687989a9b4 }, { 0x901d7cf73ab0acd9, 0x0f9d37014bf60a11 },
    { 0xb424dc35095cd80f, 0x538484c19ef38c95 }, { 0xe12e13424bb40e13, 0x2865a5f206b06fba },
    { 0x8cbccc096f5088cb, 0xf93f87b7442e45d4 }, { 0xafebff0bcb24aafe, 0xf78f69a51539d749 },
    { 0xdbe6fecebdedd5be, 0xb573440e5a884d1c }, { 0x89705f4136b4a597, 0x31680a88f8953031 },
    { 0xabcc77118461cefc, 0xfdc20d2b36ba7c3e }, { 0xd6bf94d5e57a42bc, 0x3d32907604691b4d },
    { 0x8637bd05af6c69b5, 0xa63f9a49c2c1b110 }, { 0xa7c5ac471b478423, 0x0fcf80dc33721d54 },
    { 0xd1b71758e219652b, 0xd3c36113404ea4a9 }, { 0x83126e978d4fdf3b, 0x645a1cac083126ea },
    { 0xa3d70a3d70a3d70a, 0x3d70a3d70a3d70a4 }, { 0xcccccccccccccccc, 0xcccccccccccccccd },
    { 0x8000000000000000, 0x0000000000000000 }, { 0xa000000000000000, 0x0000000000000000 },
    { 0xc800000000000000, 0x0000000000000000 }, { 0xfa00000000000000, 0x0000000000000000 },
    { 0x9c40000000000000, 0x0000000000000000 }, { 0xc350000000000000, 0x0000000000000000 },
    { 0xf424000000000000, 0x0000000000000000 }, { 0x9896800000000000, 0x0000000000000000 },
    { 0xbebc200000000000, 0x0000000000000000 }, { 0xee6b280000000000, 0x0000000000000000 },
    { 0x9502f90000000000, 0x0000000000000000 }, { 0xba43b74000000000, 0x0000000000000000 },
    { 0xe8d4a51000000000, 0x0000000000000000 }, { 0x9184e72a00000000, 0x0000000000000000 },
    { 0xb5e620f480000000, 0x0000000000000000 }, { 0xe35fa931a0000000, 0x0000000000000000 },
    { 0x8e1bc9bf04000000, 0x0000000000000000 }, { 0xb1a2bc2ec5000000, 0x0000000000000000 },
    { 0xde0b6b3a76400000, 0x0000000000000000 }, { 0x8ac7230489e80000, 0x0000000000000000 },
    { 0xad78ebc5ac620000, 0x0000000000000000 }, { 0xd8d726b7177a8000, 0x0000000000000000 },
    { 0x878678326eac9000, 0x0000000000000000 }, { 0xa968163f0a57b400, 0x0000000000000000 },
    { 0xd3c21bcecceda100, 0x0000000000000000 }, { 0x84595161401484a0, 0x0000000000000000 },
    { 0xa56fa5b99019a5c8, 0x0000000000000000 }, { 0xcecb8f27f4200f3a, 0x0000000000000000 },
    { 0x813f3978f8940984, 0x4000000000000000 }, { 0xa18f07d736b90be5, 0x5000000000000000 },
    { 0xc9f2c9cd04674ede, 0xa400000000000000 }, { 0xfc6f7c4045812296, 0x4d00000000000000 },
    { 0x9dc5ada82b70b59d, 0xf020000000000000 },
};
/* clang-format on */

__extension__ typedef unsigned __int128 Wide;

/* The bits of value * 10^exponent, rounded to nearest, by the algorithm of Eisel and Lemire
 * (Lemire, 2021); 0: 128 bits of the power are not enough, or it is not known. `value` is not 0. */
static uint64_t scale_by_5(uint64_t value, int exponent)
{
    if (exponent < -KNOWN_POWER || exponent > KNOWN_POWER)
        return 0;
    const uint64_t *power = powers_of_5[exponent + KNOWN_POWER];
    const int zeros = __builtin_clzll(value);
    Wide product = (Wide)(value << zeros) * power[0];

    if ((product >> 64 & 0x1ff) == 0x1ff)
        product += (Wide)(value << zeros) * power[1] >> 64;
    const uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if (low == UINT64_MAX)
        return 0;
    const int top = (int)(high >> 63), shift = top + 9;
    uint64_t mantissa = high >> shift;
    /* floor(exponent * log2(10)), from positive numbers */
    const int power_of_2 = ((217706 * exponent + (1024 << 16)) >> 16) - 1024;
    int binary = power_of_2 + 63 + top - zeros + 1023;
    /* in the middle of two doubles: to the even one */
    if (low <= 1 && exponent >= -4 && exponent <= 23 && (mantissa & 3) == 1 &&
        mantissa << shift == high)
        mantissa--;
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa == UINT64_C(1) << DBL_MANT_DIG) {
        mantissa >>= 1;
        binary++;
    }
    return (mantissa & ~(UINT64_C(1) << (DBL_MANT_DIG - 1))) | (uint64_t)binary << 52;
}

/* The slow way. */
static bool parse_whole(const char *from, size_t n, char decimal, uint64_t *ret)
{
    char copy[LONGEST + 1];
    double value;

    if (n > LONGEST)
        return false;
    memcpy(copy, from, n);
    copy[n] = '\0';
    char *point = decimal != '.' ? strchr(copy, decimal) : NULL;
    if (point != NULL)
        *point = '.';
    if (kiln_parse_f64(copy, &value, NULL) < 0 || !isfinite(value))
        return false;
    memcpy(ret, &value, sizeof(value));
    return true;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* The end of "e-3" at `at`, and its value; `at` and 0 if it is not there. */
static const char *take_exponent(const char *at, const char *end, int *ret)
{
    const char *p = at + 1;
    uint64_t value = 0;

    *ret = 0;
    const bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *after = kiln_digits_take(p, end, &value);
    if (after == p)
        return at;
    *ret = after - p > 4 ? 9999 : (int)value;
    *ret = negative ? -*ret : *ret;
    return after;
}

/* How many digits there are from the first that is not 0 on. */
static int64_t count_digits(const char *at, const char *end, char decimal)
{
    int64_t n = 0;

    while (at < end && (*at == '0' || *at == decimal))
        at++;
    for (; at < end; at++)
        n += *at != decimal;
    return n;
}

const char *kiln_number_read_long(const char *first, const char *after_digits, const char *end,
                                  char decimal, const KilnDigits *digits, uint64_t *ret)
{
    const char *p = after_digits;
    int64_t n = digits->n;
    int exponent = 0;

    if (p < end && (*p == 'e' || *p == 'E'))
        p = take_exponent(p, end, &exponent);
    if (n > MAX_DIGITS)
        n = count_digits(first, after_digits, decimal);
    *ret = 0;
    if (n <= MAX_DIGITS && digits->value == 0)
        return p;
    if (n <= MAX_DIGITS && digits->n_fraction <= LONGEST)
        *ret = scale_by_5(digits->value, exponent - (int)digits->n_fraction);
    if (*ret == 0 && !parse_whole(first, (size_t)(p - first), decimal, ret))
        return NULL;
    return p;
}

bool kiln_number_is(KilnString text, char decimal, double *ret)
{
    const char *const end = text.data + text.length;

    return text.length > 0 && kiln_number_read(text.data, end, decimal, ret) == end;
}
