/* Decimal numbers with a fixed point and enough digits for every double. */
#include "config/sweep/decimal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

enum { DIGITS = KILN_DECIMAL_DIGITS, WHOLE = KILN_DECIMAL_WHOLE, KEPT = 28 };

void kiln_decimal_set(KilnDecimal *decimal, double value)
{
    char text[DIGITS + 3];
    int length = snprintf(text, sizeof(text), "%.*f", DIGITS - WHOLE, value < 0 ? -value : value);
    int whole = length - (DIGITS - WHOLE) - 1;

    memset(decimal, 0, sizeof(*decimal));
    decimal->negative = value < 0;
    for (int i = 0; i < whole; i++)
        decimal->digits[WHOLE - whole + i] = (unsigned char)(text[i] - '0');
    for (int i = WHOLE; i < DIGITS; i++)
        decimal->digits[i] = (unsigned char)(text[whole + 1 + i - WHOLE] - '0');
}

static int compare_digits(const KilnDecimal *a, const KilnDecimal *b)
{
    return memcmp(a->digits, b->digits, DIGITS);
}

static int first_digit(const KilnDecimal *decimal)
{
    int i = 0;

    while (i < DIGITS && decimal->digits[i] == 0)
        i++;
    return i;
}

int kiln_decimal_compare(const KilnDecimal *a, const KilnDecimal *b)
{
    bool zeros = first_digit(a) == DIGITS && first_digit(b) == DIGITS;

    if (a->negative != b->negative)
        return zeros ? 0 : a->negative ? -1 : 1;
    return a->negative ? compare_digits(b, a) : compare_digits(a, b);
}

/* sum = a + sign * b, which is not negative */
static void add_digits(const unsigned char *a, int sign, const unsigned char *b, unsigned char *sum)
{
    int carry = 0;

    for (int i = DIGITS - 1; i >= 0; i--) {
        int digit = a[i] + sign * b[i] + carry + 10;

        carry = digit / 10 - 1;
        sum[i] = (unsigned char)(digit % 10);
    }
}

static bool rounds_up(const unsigned char *rest, int n, bool odd)
{
    if (*rest != 5)
        return *rest > 5;
    for (int i = 1; i < n; i++)
        if (rest[i] != 0)
            return true;
    return odd;
}

static void round_digits(KilnDecimal *decimal)
{
    unsigned char *digits = decimal->digits;
    int end = first_digit(decimal) + KEPT;

    if (end >= DIGITS)
        return;
    bool up = rounds_up(digits + end, DIGITS - end, digits[end - 1] % 2 == 1);
    memset(digits + end, 0, (size_t)(DIGITS - end));
    while (up && end > 0) {
        end--;
        up = digits[end] == 9;
        digits[end] = (unsigned char)(up ? 0 : digits[end] + 1);
    }
}

void kiln_decimal_add(KilnDecimal *decimal, const KilnDecimal *more)
{
    if (decimal->negative == more->negative) {
        add_digits(decimal->digits, 1, more->digits, decimal->digits);
    } else if (compare_digits(decimal, more) >= 0) {
        add_digits(decimal->digits, -1, more->digits, decimal->digits);
    } else {
        add_digits(more->digits, -1, decimal->digits, decimal->digits);
        decimal->negative = more->negative;
    }
    round_digits(decimal);
}

double kiln_decimal_get(const KilnDecimal *decimal)
{
    char text[KEPT + 16];
    int first = first_digit(decimal), n = 0;
    double value = 0;

    if (first == DIGITS)
        return 0;
    if (decimal->negative)
        text[n++] = '-';
    for (int i = first; i < first + KEPT && i < DIGITS; i++)
        text[n++] = (char)('0' + decimal->digits[i]);
    int last = first + KEPT < DIGITS ? first + KEPT : DIGITS;
    (void)snprintf(text + n, sizeof(text) - (size_t)n, "e%d", WHOLE - last);
    if (kiln_parse_f64(text, &value, NULL) < 0)
        return decimal->negative ? -HUGE_VAL : HUGE_VAL;
    return value;
}

double kiln_decimal_round(double value)
{
    char text[KILN_F64_TEXT];
    double rounded = value;

    (void)snprintf(text, sizeof(text), "%.12g", value);
    (void)!kiln_parse_f64(text, &rounded, NULL);
    return rounded;
}
