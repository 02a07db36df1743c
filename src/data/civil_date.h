/* Days and dates of the Gregorian calendar (Hinnant, "chrono-compatible low-level date
 * algorithms").
 */
#ifndef KILN_DATA_CIVIL_DATE_H
#define KILN_DATA_CIVIL_DATE_H

#include <stdint.h>

typedef struct KilnCivilDate {
    int64_t year;
    int month, day; /* from 1 */
} KilnCivilDate;

/* Days since 1970-01-01, and back. */
int64_t kiln_civil_date_days(KilnCivilDate date);
KilnCivilDate kiln_civil_date_of(int64_t days);

#endif
