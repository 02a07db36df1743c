/* Flight records: the ring buffer, its contents after a process ends at any point, damaged
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln.h"
#include "kiln/files/flight.h"

static char dir[64], path[96];

static int make_dir(void **unused)
{
    (void)unused;
    snprintf(dir, sizeof(dir), "/tmp/kiln-flight-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/flight.kiln", dir);
    return 0;
}

static int remove_dir(void **unused)
{
    (void)unused;
    return kiln_path_remove(dir, NULL) < 0;
}

static const char *const names[] = { "a.weight", "a.bias" };
static const int64_t samples[] = { 5, 6, 7, 8 };

static KilnFlight *make(int64_t n_batches)
{
    const KilnFlightForm form = {
        .seed = 42, .n_batches = n_batches, .most_samples = 3, .names = names, .n_names = 2
    };
    KilnFlight *flight = NULL;
    KilnError err = { 0 };

    if (kiln_flight_create(path, &form, &flight, &err) < 0)
        fail_msg("%s", err.text);
    return flight;
}

static void record(KilnFlight *flight, int64_t i, bool ends)
{
    const float norms[] = { (float)i, 0.5f };
    const KilnFlightBatch batch = {
        .epoch = i / 4,
        .batch = i % 4,
        .step = i,
        .batches = i,
        .n_samples = 4,
        .samples = samples,
        .loss = i == 6 ? (double)NAN : 10.0 * (double)i,
        .rate = 0.1,
        .stepped = i % 2 == 0,
        .norms = norms,
    };

    kiln_flight_begin(flight, &batch);
    if (ends)
        kiln_flight_end(flight, &batch);
}

static KilnFlight *look(void)
{
    KilnFlight *seen = NULL;
    KilnError err = { 0 };

    if (kiln_flight_open(path, &seen, &err) < 0)
        fail_msg("%s", err.text);
    return seen;
}

/* The file is read while the first process still has it, as after a kill. */
static void test_ring(void **unused)
{
    KilnFlight *flight = make(4);

    (void)unused;
    for (int64_t i = 0; i < 8; i++) {
        record(flight, i, i != 7);
        KilnFlight *seen = look();
        const size_t n = i < 4 ? (size_t)i + 1 : 4;
        assert_int_equal(kiln_flight_count(seen), n);
        const KilnFlightBatch first = kiln_flight_at(seen, 0), last = kiln_flight_at(seen, n - 1);
        assert_int_equal(first.batches, i < 4 ? 0 : i - 3);
        assert_int_equal(last.batches, i);
        assert_int_equal(last.epoch, i / 4);
        assert_int_equal(last.n_samples, 4);
        assert_memory_equal(last.samples, samples, 3 * sizeof(*samples)); /* as many as are kept */
        assert_int_equal(last.ended, i != 7);
        assert_int_equal(last.stepped, i % 2 == 0 && i != 7);
        if (last.stepped)
            assert_true(last.norms[0] == (float)i && last.norms[1] == 0.5f);
        else
            assert_null(last.norms);
        if (i == 6 || i == 7)
            assert_true(isnan(last.loss));
        else
            assert_true(last.loss == 10.0 * (double)i);
        kiln_flight_close(seen);
    }
    kiln_flight_set_reason(flight, "the loss is NaN");
    kiln_flight_close(flight);
    flight = look();
    assert_string_equal(kiln_flight_reason(flight), "the loss is NaN");
    const KilnFlightForm form = kiln_flight_form(flight);
    assert_int_equal(form.seed, 42);
    assert_int_equal(form.n_names, 2);
    assert_string_equal(form.names[1], "a.bias");
    kiln_flight_close(flight);
    kiln_flight_close(NULL);
}

static void test_long_reason(void **unused)
{
    KilnFlight *flight = make(1);
    char reason[5000];

    (void)unused;
    memset(reason, 'x', sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    kiln_flight_set_reason(flight, reason);
    assert_int_equal(strlen(kiln_flight_reason(flight)), 1023);
    kiln_flight_close(flight);
}

/* Every length, and every byte of the head turned over: refused or read, never more. */
static void test_damaged(void **unused)
{
    KilnFlight *flight = make(2), *seen;
    char *whole = NULL;
    size_t size = 0;

    (void)unused;
    record(flight, 0, true);
    kiln_flight_close(flight);
    assert_int_equal(kiln_file_read(path, 1 << 20, &whole, &size, NULL), KILN_OK);
    for (size_t cut = 0; cut < size; cut += cut < 100 ? 1 : 97) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        assert_int_equal(kiln_flight_open(path, &seen, NULL), KILN_E_FORMAT);
        assert_int_equal(kiln_file_write(path, whole, size, NULL), KILN_OK);
    }
    for (size_t i = 0; i < size && i < 1200; i++) {
        whole[i] ^= (char)0x80;
        assert_int_equal(kiln_file_write(path, whole, size, NULL), KILN_OK);
        if (kiln_flight_open(path, &seen, NULL) >= 0) {
            for (size_t k = 0; k < kiln_flight_count(seen); k++)
                (void)kiln_flight_at(seen, k);
            kiln_flight_close(seen);
        }
        whole[i] ^= (char)0x80;
    }
    free(whole);
    assert_int_equal(kiln_flight_open("/nonexistent/flight.kiln", &seen, NULL), KILN_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ring, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_long_reason, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_damaged, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
