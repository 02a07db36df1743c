/* Divisions of the processors among jobs: which are measured, which one is chosen, and the text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "kiln.h"
#include "sweep/speed/division.h"

/* "1x4 2x2 4x1": jobs x threads. */
static void assert_listed(size_t processors, size_t threads, size_t most, const char *want)
{
    KilnDivisions divisions;
    KilnText text = { 0 };

    kiln_divisions_list(processors, threads, most, &divisions);
    for (size_t i = 0; i < divisions.count; i++) {
        const KilnDivision *division = &divisions.items[i];

        kiln_text_printf(&text, "%s%zux%zu", i > 0 ? " " : "", division->n_jobs, division->threads);
        assert_true(isnan(division->steps_per_s));
        assert_string_equal(division->failed, "");
    }
    assert_string_equal(text.data, want);
    kiln_text_release(&text);
}

static void divisions_use_all_processors(void **unused)
{
    (void)unused;
    assert_listed(1, 0, SIZE_MAX, "1x1");
    assert_listed(2, 0, SIZE_MAX, "1x2 2x1");
    assert_listed(8, 0, SIZE_MAX, "1x8 2x4 4x2 8x1");
    assert_listed(3, 0, SIZE_MAX, "1x3 3x1");
    assert_listed(6, 0, SIZE_MAX, "1x6 2x3 6x1");
    assert_listed(20, 0, SIZE_MAX, "1x20 2x10 4x5 10x2 20x1");
}

static void at_most_as_many_jobs_as_there_is_room_for(void **unused)
{
    (void)unused;
    assert_listed(8, 0, 1, "1x8");
    assert_listed(8, 0, 0, "1x8");
    assert_listed(8, 0, 3, "1x8 2x4 3x2");
    assert_listed(64, 0, 8, "1x64 2x32 4x16 8x8");
}

static void threads_that_are_given_stay(void **unused)
{
    (void)unused;
    assert_listed(8, 1, SIZE_MAX, "1x1 2x1 4x1 8x1");
    assert_listed(8, 3, SIZE_MAX, "1x3 2x3");
    assert_listed(20, 2, SIZE_MAX, "1x2 2x2 4x2 8x2 10x2");
    assert_listed(20, 2, 3, "1x2 2x2 3x2");
    assert_listed(2, 4, SIZE_MAX, "1x4");
}

/* ---- The choice ------------------------------------------------------------------------------ */

/* Of 8 processors, with these speeds; NAN: it failed. Of so many jobs. */
static size_t chosen(size_t all_jobs, double one, double two, double four, double eight)
{
    const double speeds[] = { one, two, four, eight };
    KilnDivisions divisions = { .all_jobs = all_jobs };

    kiln_divisions_list(8, 0, SIZE_MAX, &divisions);
    assert_int_equal(divisions.count, KILN_COUNT(speeds));
    for (size_t i = 0; i < divisions.count; i++)
        divisions.items[i].steps_per_s = speeds[i];
    const KilnDivision *fastest = kiln_divisions_fastest(&divisions);
    return fastest != NULL ? fastest->n_jobs : 0;
}

static void the_fastest_one_is_chosen(void **unused)
{
    (void)unused;
    assert_int_equal(chosen(SIZE_MAX, 100.0, 200.0, 300.0, 400.0), 8);
    assert_int_equal(chosen(SIZE_MAX, 400.0, 300.0, 200.0, 100.0), 1);
    assert_int_equal(chosen(SIZE_MAX, 100.0, 300.0, 200.0, 250.0), 2);
}

static void fewer_jobs_are_chosen_where_speeds_are_close(void **unused)
{
    (void)unused;
    assert_int_equal(chosen(SIZE_MAX, 98.0, 99.0, 100.0, 99.0), 1);
    assert_int_equal(chosen(SIZE_MAX, 96.0, 98.0, 99.0, 100.0), 2);
}

static void a_failed_one_is_not_chosen(void **unused)
{
    const double failed = (double)NAN;

    (void)unused;
    assert_int_equal(chosen(SIZE_MAX, failed, 100.0, failed, 90.0), 2);
    assert_int_equal(chosen(SIZE_MAX, failed, failed, failed, 1e-9), 8);
    assert_int_equal(chosen(SIZE_MAX, failed, failed, failed, failed), 0);
}

/* 5 jobs, 4 at a time, take as long as 8. */
static void the_last_jobs_leave_processors_idle(void **unused)
{
    (void)unused;
    assert_int_equal(chosen(5, 100.0, 110.0, 150.0, 100.0), 1);
    assert_int_equal(chosen(5, 100.0, 110.0, 180.0, 100.0), 4);
    assert_int_equal(chosen(8, 100.0, 110.0, 150.0, 100.0), 4);
    assert_int_equal(chosen(1000, 100.0, 110.0, 150.0, 100.0), 4);
}

/* ---- The text -------------------------------------------------------------------------------- */

static void assert_text(const KilnDivisions *divisions, size_t chosen, const char *want)
{
    KilnText text = { 0 };

    kiln_divisions_text(divisions, &divisions->items[chosen], &text);
    assert_string_equal(text.data, want);
    kiln_text_release(&text);
}

static void a_line_says_what_was_measured(void **unused)
{
    KilnDivisions divisions = { .all_jobs = 5 };

    (void)unused;
    kiln_divisions_list(4, 0, SIZE_MAX, &divisions);
    divisions.items[0].steps_per_s = 300.4;
    divisions.items[1].steps_per_s = 412.0;
    strcpy(divisions.items[2].failed, "killed by SIGKILL");
    assert_text(&divisions, 1,
                "2 jobs at a time with 2 threads each: 412 steps/s; one with 4 threads: 300 "
                "steps/s; 4 with a thread each: failed (killed by SIGKILL)");
    assert_text(&divisions, 0,
                "one job at a time with 4 threads: 300 steps/s; 2 with 2 threads each: 412 "
                "steps/s, but 5 jobs would end later; 4 with a thread each: failed (killed by "
                "SIGKILL)");
    divisions.items[0].steps_per_s = 2.345;
    divisions.count = 1;
    assert_text(&divisions, 0, "one job at a time with 4 threads: 2.35 steps/s");
    strcpy(divisions.items[0].failed, "out of memory");
    assert_text(&divisions, 0, "one job at a time, as no speed could be measured: out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_use_all_processors),
        cmocka_unit_test(at_most_as_many_jobs_as_there_is_room_for),
        cmocka_unit_test(threads_that_are_given_stay),
        cmocka_unit_test(the_fastest_one_is_chosen),
        cmocka_unit_test(fewer_jobs_are_chosen_where_speeds_are_close),
        cmocka_unit_test(a_failed_one_is_not_chosen),
        cmocka_unit_test(the_last_jobs_leave_processors_idle),
        cmocka_unit_test(a_line_says_what_was_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
