/* Strict numbers: the whole text, in range, or an error. The only place that
 * turns text into numbers. */
#ifndef KILN_BASE_PARSE_H
#define KILN_BASE_PARSE_H

#include "kiln/base.h"

/* A decimal integer with optional sign and single underscores between digits
 * (1_000), as YAML has it. KILN_E_TYPE when it is no integer, KILN_E_RANGE when
 * it does not fit. The message says "'TEXT' is not an integer". */
KILN_NODISCARD KilnStatus kiln_parse_i64(const char *text, int64_t *ret, KilnError *err);
/* A decimal number (1, 0.5, 1e-3, .5, 1_000.0); inf and nan only in YAML's
 * spelling (.inf, -.inf, .nan) or as inf, -inf, nan. */
KILN_NODISCARD KilnStatus kiln_parse_f64(const char *text, double *ret, KilnError *err);
/* Seconds: 90s, 1.5h, 1h30m, 2d, 250ms, 00:15:00 (hours:minutes:seconds), 15:00, or
 * a plain number of seconds. KILN_E_TYPE says what is accepted. */
KILN_NODISCARD KilnStatus kiln_parse_duration(const char *text, double *ret, KilnError *err);
/* Bytes: 512, 64KiB, 64MiB, 1.5GiB, 2GB (powers of ten without the i), K, M, G, T
 * alone are the binary ones. Whole bytes only. KILN_E_TYPE, KILN_E_RANGE. */
KILN_NODISCARD KilnStatus kiln_parse_size(const char *text, int64_t *ret, KilnError *err);
/* The shortest text that parses to the same double; always looks like a
 * float (1.0, 1e-05, .inf). `buf` of at least KILN_F64_TEXT bytes; returns buf. */
const char *kiln_format_f64(double value, char *buf, size_t size);
#define KILN_F64_TEXT 32

#endif
