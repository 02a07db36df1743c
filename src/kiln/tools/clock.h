/* A clock for measuring durations, and numbers with units for people. */
#ifndef KILN_CLOCK_H
#define KILN_CLOCK_H

#include "kiln/base.h"

/* Seconds since an arbitrary start, from a clock that is never set (CLOCK_MONOTONIC): only
 * differences between two calls have a meaning. From any thread. */
KILN_API double kiln_clock(void);

/* Bytes for one of the texts below. */
#define KILN_UNIT_TEXT 32

/* Each writes to `buf` (KILN_UNIT_TEXT bytes) and returns it. */

/* Bytes in units of 1024: "512 B", "1.50 MiB". */
KILN_API const char *kiln_bytes_text(double bytes, char *buf);
/* A quantity in units of 1000: "983", "11.2 M", "3.63 G". */
KILN_API const char *kiln_quantity_text(double quantity, char *buf);
/* A duration with its unit: "12 us", "3.40 ms", "1 h 5 min"; "no end" for infinity and NaN. */
KILN_API const char *kiln_seconds_text(double seconds, char *buf);
/* A duration as on a clock, rounded to seconds: "0:41", "1:05:00", "2d03h". Finite and not
 * negative. */
KILN_API const char *kiln_clock_text(double seconds, char *buf);
/* A whole number with thousands separated: "11,173,962". */
KILN_API const char *kiln_commas_text(int64_t value, char *buf);

#endif
