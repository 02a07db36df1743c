/* The report that data loading is the bottleneck: its line and its number. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"
#include "train/loader/bottleneck.h"

static void test_advice(void **unused)
{
    static const struct {
        KilnLoadingRate schedule;
        bool cache;
        const char *want; /* NULL: nothing */
    } cases[] = {
        /* seconds = taken * step + waited */
        { { { 100, 100, 4.0, 5.0, 0.0, 0.1 }, 5.0, 1, 2 },
          false,
          "the steps waited for data 80 % of the epoch: a batch takes 50 ms to load (reading "
          "samples, "
          "2 % of it computing) and 10 ms to train on; trainer.num_workers=5 would keep up (now "
          "1)" },
        { { { 100, 100, 4.0, 4.0, 0.0, 0.0 }, 5.0, 0, 2 },
          true,
          "trainer.num_workers=4 would keep up (now 0), or datamodule.cache=DIR" },
        { { { 100, 100, 4.0, 5.0, 2.0, 5.0 }, 5.0, 1, 8 },
          false,
          "50 ms to load (30 ms reading samples, 20 ms batch_transforms, 100 % of it computing) "
          "and "
          "10 ms to train on" },
        /* decoding is work for processors */
        { { { 100, 100, 4.0, 5.0, 0.0, 5.0 }, 5.0, 1, 8 }, false, "num_workers=5 would keep up" },
        { { { 100, 100, 4.0, 5.0, 0.0, 5.0 }, 5.0, 1, 4 },
          false,
          "num_workers=4 would help (now 1)" },
        { { { 100, 100, 4.0, 20.0, 0.0, 20.0 }, 5.0, 4, 4 },
          true,
          "more workers would not help, as there are 4 processors: make samples cheaper to read "
          "(datamodule.cache=DIR)" },
        /* not worth a word */
        { { { 100, 100, 0.9, 1.0, 0.0, 0.1 }, 1.1, 1, 2 }, false, NULL },
        { { { 100, 100, 1.5, 1.5, 0.0, 0.1 }, 10.0, 1, 2 }, false, NULL },
        { { { 0, 0, 2.0, 0.0, 0.0, 0.0 }, 2.0, 1, 2 }, false, NULL },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char line[512] = "";

        assert_int_equal(
            kiln_loading_advice(&cases[i].schedule, cases[i].cache, line, sizeof(line)),
            cases[i].want != NULL);
        if (cases[i].want != NULL && strstr(line, cases[i].want) == NULL)
            fail_msg("case %zu: \"%s\" is not in \"%s\"", i, cases[i].want, line);
    }
}

/* A run whose batches of 8 take 24 ms to load and some 8 ms to train on. */
static void fit_slowly(const char *run, int workers)
{
    char overrides[512];

    snprintf(overrides, sizeof(overrides),
             "trainer.max_epochs=1 test=false trainer.limit_val_batches=0 "
             "datamodule.train_count=512 datamodule.sample_ms=3 "
             "trainer.num_workers=%d",
             workers);
    recorder.printed[0] = '\0';
    recorder.batch_ms = 8;
    fit_well(run, overrides, "finished");
}

/* The number that is named keeps up. */
static void test_the_number_is_right(void **unused)
{
    (void)unused;
    fit_slowly("slow", 1);
    const char *line = strstr(recorder.printed, "the steps waited for data ");
    assert_non_null(line);
    const char *number = strstr(line, "trainer.num_workers=");
    assert_non_null(number);
    int workers = atoi(number + strlen("trainer.num_workers="));
    assert_in_range(workers, 2, 5); /* 3, on a machine with nothing else to do */
    assert_non_null(strstr(number, " would keep up (now 1)"));
    fit_slowly("fast", workers);
    assert_null(strstr(recorder.printed, "waited for data"));
    fit_slowly("none", 0);
    assert_non_null(strstr(recorder.printed, "(now 0)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advice),
        cmocka_unit_test_setup_teardown(test_the_number_is_right, make_work, remove_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
