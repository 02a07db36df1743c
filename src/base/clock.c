/* The clock, and bytes, amounts and times with a unit. */
#include "kiln/tools/clock.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

double kiln_clock(void)
{
    struct timespec now = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Three digits that say something: 1.23, 12.3, 123. */
static const char *with_unit(double value, const char *unit, char *buf)
{
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

    snprintf(buf, KILN_UNIT_TEXT, "%.*f %s", decimals, value, unit);
    return buf;
}

const char *kiln_bytes_text(double bytes, char *buf)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
    size_t unit = 0;

    if (bytes < 1024.0) {
        snprintf(buf, KILN_UNIT_TEXT, "%.0f B", bytes);
        return buf;
    }
    for (bytes /= 1024.0; bytes >= 1023.5 && unit + 1 < KILN_COUNT(units); bytes /= 1024.0)
        unit++;
    return with_unit(bytes, units[unit], buf);
}

const char *kiln_quantity_text(double quantity, char *buf)
{
    static const char *const units[] = { "k", "M", "G", "T", "P", "E" };
    size_t unit = 0;

    if (quantity < 1000.0) {
        snprintf(buf, KILN_UNIT_TEXT, "%.0f", quantity);
        return buf;
    }
    for (quantity /= 1000.0; quantity >= 999.5 && unit + 1 < KILN_COUNT(units); quantity /= 1000.0)
        unit++;
    return with_unit(quantity, units[unit], buf);
}

const char *kiln_seconds_text(double seconds, char *buf)
{
    double minutes = floor(seconds / 60.0 + 0.5);

    if (!isfinite(seconds))
        snprintf(buf, KILN_UNIT_TEXT, "no end");
    else if (seconds < 0.9995e-3)
        return with_unit(1e6 * seconds, "us", buf);
    else if (seconds < 0.9995)
        return with_unit(1e3 * seconds, "ms", buf);
    else if (seconds < 99.95)
        return with_unit(seconds, "s", buf);
    else if (minutes < 60.0)
        snprintf(buf, KILN_UNIT_TEXT, "%.0f min", minutes);
    else if (minutes < 48.0 * 60.0)
        snprintf(buf, KILN_UNIT_TEXT, "%.0f h %.0f min", floor(minutes / 60.0),
                 fmod(minutes, 60.0));
    else
        snprintf(buf, KILN_UNIT_TEXT, "%.1f days", minutes / (24.0 * 60.0));
    return buf;
}

const char *kiln_clock_text(double seconds, char *buf)
{
    const long whole = (long)(seconds + 0.5);

    if (whole >= 86400)
        snprintf(buf, KILN_UNIT_TEXT, "%ldd%02ldh", whole / 86400, whole / 3600 % 24);
    else if (whole >= 3600)
        snprintf(buf, KILN_UNIT_TEXT, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(buf, KILN_UNIT_TEXT, "%ld:%02ld", whole / 60, whole % 60);
    return buf;
}

const char *kiln_commas_text(int64_t value, char *buf)
{
    char digits[KILN_UNIT_TEXT];
    size_t n = (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)value), used = 0;

    for (size_t i = 0; i < n && used + 2 < KILN_UNIT_TEXT; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}
