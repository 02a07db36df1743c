/* Event files: framing, checksums and messages, read back by hand; resuming at a position.
 * TensorBoard itself reads them in tests/peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln.h"
#include "kiln/files/events.h"

static char path[64];

static int make_file(void **unused)
{
    (void)unused;
    snprintf(path, sizeof(path), "/tmp/kiln-events-XXXXXX");
    return mkstemp(path) < 0;
}

static int remove_file(void **unused)
{
    (void)unused;
    return unlink(path);
}

/* ---- A reader of its own -------------------------------------------------------------------- */

/* CRC-32C bit by bit, masked. */
static uint32_t masked_crc(const uint8_t *data, size_t size)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint64_t little(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

typedef struct Span {
    const uint8_t *data;
    size_t size;
} Span;

static uint64_t varint(Span *span)
{
    uint64_t value = 0;

    for (int shift = 0;; shift += 7) {
        assert_true(span->size > 0 && shift < 64);
        uint8_t byte = *span->data++;
        span->size--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* Field `number` of a message: its bytes, or of a number its 8 bytes in *ret_number. */
static bool field(Span message, uint64_t number, Span *ret, uint64_t *ret_number)
{
    while (message.size > 0) {
        uint64_t key = varint(&message), value = 0;
        Span bytes = { 0 };

        if ((key & 7) == 0) {
            value = varint(&message);
        } else {
            bytes.size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : (size_t)varint(&message);
            bytes.data = message.data;
            assert_true(bytes.size <= message.size);
            message.data += bytes.size;
            message.size -= bytes.size;
            if ((key & 7) != 2)
                value = little(bytes.data, bytes.size);
        }
        if (key >> 3 != number)
            continue;
        if (ret != NULL)
            *ret = bytes;
        if (ret_number != NULL)
            *ret_number = value;
        return true;
    }
    return false;
}

/* A message inside of messages: the fields on the way, closed by 0. */
static Span inside(Span message, const uint64_t *way)
{
    for (; *way != 0; way++)
        assert_true(field(message, *way, &message, NULL));
    return message;
}
#define INSIDE(message, ...) inside(message, (const uint64_t[]) { __VA_ARGS__, 0 })

static double double_of(Span message, uint64_t number)
{
    uint64_t bits = 0;
    double value;

    assert_true(field(message, number, NULL, &bits));
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void assert_text(Span span, const char *want)
{
    assert_int_equal(span.size, strlen(want));
    assert_memory_equal(span.data, want, span.size);
}

enum { MOST = 16 };

/* Records of the file with their checksums checked; how many. *text is theirs. */
static size_t read_records(Span records[MOST], char **text)
{
    size_t size = 0, n = 0;

    assert_int_equal(kiln_file_read(path, 1 << 20, text, &size, NULL), KILN_OK);
    for (const uint8_t *p = (const uint8_t *)*text, *end = p + size; p < end; n++) {
        size_t length = (size_t)little(p, 8);

        assert_true(n < MOST && (size_t)(end - p) >= length + 16);
        assert_int_equal(little(p + 8, 4), masked_crc(p, 8));
        assert_int_equal(little(p + 12 + length, 4), masked_crc(p + 12, length));
        records[n] = (Span) { .data = p + 12, .size = length };
        p += length + 16;
    }
    return n;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static KilnEvents *open_events(int64_t offset)
{
    KilnEvents *events = NULL;
    KilnError err = { 0 };

    if (kiln_events_open(path, offset, &events, &err) < 0)
        fail_msg("%s", err.text);
    return events;
}

static void add_scalar(KilnEvents *events, const char *tag, double value, int64_t step)
{
    const KilnEvent event = {
        .kind = KILN_EVENT_SCALAR, .tag = tag, .scalar = value, .step = step, .wall_time = 1.25
    };

    assert_int_equal(kiln_events_add(events, &event, NULL), KILN_OK);
}

static void test_checksum(void **unused)
{
    (void)unused; /* the known value of CRC-32C, masked */
    uint32_t crc = 0xe3069283u;
    assert_int_equal(masked_crc((const uint8_t *)"123456789", 9),
                     (uint32_t)(((crc >> 15) | (crc << 17)) + 0xa282ead8u));
}

static void test_scalars(void **unused)
{
    KilnEvents *events = open_events(0);
    Span records[MOST];
    char *text = NULL;
    uint64_t number = 0;
    float value;

    (void)unused;
    add_scalar(events, "train/loss", 0.5, 300);
    add_scalar(events, "zero", 0.0, 0);
    assert_int_equal(kiln_events_flush(events, NULL), KILN_OK);
    assert_int_equal(read_records(records, &text), 3);
    assert_text(INSIDE(records[0], 3), "brain.Event:2");
    assert_true(double_of(records[1], 1) == 1.25);
    assert_true(field(records[1], 2, NULL, &number));
    assert_int_equal(number, 300);
    assert_text(INSIDE(records[1], 5, 1, 1), "train/loss");
    assert_true(field(INSIDE(records[1], 5, 1), 2, NULL, &number));
    memcpy(&value, &(uint32_t) { (uint32_t)number }, sizeof(value));
    assert_true(value == 0.5f);
    assert_true(field(INSIDE(records[2], 5, 1), 2, NULL, &number)); /* a zero is there, too */
    assert_int_equal(number, 0);
    free(text);
    kiln_events_close(events);
}

/* Everything after the position of a checkpoint is removed; a missing file is started again. */
static void test_goes_on(void **unused)
{
    KilnEvents *events = open_events(0);
    Span records[MOST];
    char *text = NULL;

    (void)unused;
    add_scalar(events, "a", 1, 1);
    int64_t offset = kiln_events_offset(events);
    add_scalar(events, "b", 2, 2);
    kiln_events_close(events);
    events = open_events(offset);
    assert_int_equal(kiln_events_offset(events), offset);
    add_scalar(events, "c", 3, 2);
    kiln_events_close(events);
    assert_int_equal(read_records(records, &text), 3);
    assert_text(INSIDE(records[1], 5, 1, 1), "a");
    assert_text(INSIDE(records[2], 5, 1, 1), "c");
    free(text);
    events = open_events(1 << 20);
    kiln_events_close(events);
    assert_int_equal(read_records(records, &text), 1);
    free(text);
}

static void test_histogram(void **unused)
{
    const double edges[] = { -1.0, 0.0, 2.0 };
    const int64_t counts[] = { 3, 4 };
    const KilnHistogram histogram = {
        .edges = edges,
        .counts = counts,
        .n_bins = 2,
        .count = 7,
        .min = -0.5,
        .max = 1.5,
        .sum = 2.5,
        .sum_squares = 5.0,
    };
    KilnEvents *events = open_events(0);
    Span records[MOST];
    char *text = NULL;

    (void)unused;
    assert_int_equal(
        kiln_events_add(
            events,
            &(KilnEvent) { .kind = KILN_EVENT_HISTOGRAM, .tag = "w", .histogram = &histogram },
            NULL),
        KILN_OK);
    kiln_events_close(events);
    assert_int_equal(read_records(records, &text), 2);
    Span found = INSIDE(records[1], 5, 1, 5);
    assert_true(double_of(found, 1) == -0.5 && double_of(found, 2) == 1.5);
    assert_true(double_of(found, 3) == 7.0 && double_of(found, 4) == 2.5);
    assert_true(double_of(found, 5) == 5.0);
    Span limits = INSIDE(found, 6), numbers = INSIDE(found, 7);
    assert_int_equal(limits.size, 16);
    assert_memory_equal(limits.data, edges + 1, 16);
    assert_int_equal(numbers.size, 16);
    assert_memory_equal(numbers.data, ((const double[]) { 3.0, 4.0 }), 16);
    free(text);
}

static void test_hparams_and_text(void **unused)
{
    const KilnHparam hparams[] = {
        { .name = "lr", .value = "0.5", .kind = KILN_HPARAM_NUMBER, .number = 0.5 },
        { .name = "model", .value = "model/mlp" },
        { .name = "nesterov", .value = "true", .kind = KILN_HPARAM_BOOL, .number = 1.0 },
    };
    const char *const metrics[] = { "val/loss" };
    const KilnLogRun run = {
        .hparams = hparams, .n_hparams = 3, .metrics = metrics, .n_metrics = 1
    };
    const KilnEvent all[] = {
        { .kind = KILN_EVENT_EXPERIMENT, .run = &run },
        { .kind = KILN_EVENT_SESSION, .run = &run },
        { .kind = KILN_EVENT_SESSION_END, .failed = true },
        { .kind = KILN_EVENT_TEXT, .tag = "note", .text = "hello" },
    };
    KilnEvents *events = open_events(0);
    Span records[MOST];
    char *text = NULL;
    uint64_t number = 0;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(all); i++)
        assert_int_equal(kiln_events_add(events, &all[i], NULL), KILN_OK);
    kiln_events_close(events);
    assert_int_equal(read_records(records, &text), 5);
    assert_text(INSIDE(records[1], 5, 1, 1), "_hparams_/experiment");
    assert_text(INSIDE(records[1], 5, 1, 9, 1, 1), "hparams");
    assert_text(INSIDE(records[1], 5, 1, 9, 1, 2, 2, 4, 1), "lr");
    assert_text(INSIDE(records[1], 5, 1, 9, 1, 2, 2, 5, 1, 2), "val/loss");
    assert_text(INSIDE(records[2], 5, 1, 1), "_hparams_/session_start_info");
    Span entry = INSIDE(records[2], 5, 1, 9, 1, 2, 3, 1);
    assert_text(INSIDE(entry, 1), "lr");
    assert_true(double_of(INSIDE(entry, 2), 2) == 0.5);
    assert_true(field(INSIDE(records[3], 5, 1, 9, 1, 2, 4), 1, NULL, &number));
    assert_int_equal(number, 2);
    assert_text(INSIDE(records[4], 5, 1, 8, 8), "hello");
    assert_text(INSIDE(records[4], 5, 1, 9, 1, 1), "text");
    free(text);
}

static void test_missing_folder(void **unused)
{
    KilnEvents *events = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_events_open("/nonexistent/x", 0, &events, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "/nonexistent/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum),
        cmocka_unit_test_setup_teardown(test_scalars, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_goes_on, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_histogram, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_hparams_and_text, make_file, remove_file),
        cmocka_unit_test(test_missing_folder),
    };
    KilnError err = { 0 };

    if (kiln_events_supported(&err) < 0) {
        printf("skip: %s\n", err.text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
