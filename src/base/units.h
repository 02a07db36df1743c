/* Numbers with units, for people. */
#ifndef KILN_BASE_UNITS_H
#define KILN_BASE_UNITS_H

#include "kiln/base.h"

#define KILN_UNIT_TEXT 32

/* Each writes to buf (KILN_UNIT_TEXT bytes) and returns it. */
const char *kiln_bytes_text(double bytes, char *buf);       /* "512 B", "1.5 MiB" */
const char *kiln_quantity_text(double quantity, char *buf); /* "983", "11.2 M", "3.63 G" */
const char *kiln_seconds_text(double seconds, char *buf);   /* "12 us", "3.4 ms", "1 h 5 min" */
const char *kiln_clock_text(double seconds, char *buf);     /* "0:41", "1:05:00", "2d03h" */
const char *kiln_commas_text(int64_t value, char *buf);     /* "11,173,962" */

#endif
