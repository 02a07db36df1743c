/* Years begin in March here, so that the day of a leap year is the last one. */
#include "data/civil_date.h"

enum { ERA_DAYS = 146097 /* 400 years */, EPOCH = 719468 /* days from 0000-03-01 to 1970-01-01 */ };

int64_t kiln_civil_date_days(KilnCivilDate date)
{
    const int64_t y = date.year - (date.month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    const int64_t of_era = y - era * 400;
    const int64_t month = date.month + (date.month > 2 ? -3 : 9);
    const int64_t of_year = (153 * month + 2) / 5 + date.day - 1;

    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
}

KilnCivilDate kiln_civil_date_of(int64_t days)
{
    const int64_t z = days + EPOCH, era = (z >= 0 ? z : z - (ERA_DAYS - 1)) / ERA_DAYS;
    const int64_t of_era = z - era * ERA_DAYS;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153;

    return (KilnCivilDate) { .year = year + era * 400 + (month >= 10),
                             .month = (int)(month < 10 ? month + 3 : month - 9),
                             .day = (int)(of_year - (153 * month + 2) / 5 + 1) };
}
