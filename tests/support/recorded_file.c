#include "tests/support/recorded_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/param_memory.h"

void record_open(Record *record, const char *name)
{
    char path[256];
    size_t size;
    KilnError err = { 0 };

    snprintf(path, sizeof(path), "tests/data/models/%s", name);
    if (kiln_file_read(path, 1 << 24, &record->text, &size, &err) < 0)
        fail_msg("%s", err.text);
    record->next = record->text;
}

void record_close(Record *record)
{
    free(record->text);
}

bool record_line(Record *record)
{
    char *p = record->next;

    record->words = 0;
    if (*p == '\0')
        return false;
    while (*p != '\0' && *p != '\n') {
        assert_true(record->words < RECORD_WORDS);
        record->word[record->words++] = p;
        while (*p != '\0' && *p != '\n' && *p != ' ')
            p++;
        if (*p == ' ')
            *p++ = '\0';
    }
    if (*p == '\n')
        *p++ = '\0';
    /* A line that ends with a blank has no last word. */
    if (record->words > 0 && record->word[record->words - 1][0] == '\0')
        record->words--;
    record->next = p;
    return true;
}

bool record_is(const Record *record, const char *keyword)
{
    return record->words > 0 && strcmp(record->word[0], keyword) == 0;
}

void record_find(Record *record, const char *file, const char *keyword, const char *name)
{
    record_open(record, file);
    while (record_line(record))
        if (record_is(record, keyword) && strcmp(record->word[1], name) == 0)
            return;
    fail_msg("no %s %s is recorded", keyword, name);
}

double record_f64(const Record *record, size_t i)
{
    double value = 0.0;

    assert_true(i < record->words);
    assert_int_equal(kiln_parse_f64(record->word[i], &value, NULL), KILN_OK);
    return value;
}

int64_t record_i64(const Record *record, size_t i)
{
    int64_t value = 0;

    assert_true(i < record->words);
    assert_int_equal(kiln_parse_i64(record->word[i], &value, NULL), KILN_OK);
    return value;
}

double pattern(uint32_t key, uint32_t index)
{
    uint32_t h = index * 0x9E3779B1u;

    h ^= key * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    h ^= h >> 15;
    return (double)h / 2147483648.0 - 1.0;
}

void params_fill(KilnParams *params)
{
    for (size_t k = 0; k < kiln_params_count(params); k++) {
        KilnParam *param = kiln_params_at(params, k);
        const KilnShape *shape = kiln_param_shape(param);
        int64_t n = kiln_shape_count(shape);
        const char *name = kiln_param_name(param);
        double scale = 0.25, offset = 0.0;
        float *data = param_data(param);

        if (kiln_param_dtype(param) == KILN_I64)
            continue;
        if (strstr(name, "running_var") != NULL) {
            scale = 0.5;
            offset = 1.0;
        } else if (shape->rank > 1) {
            scale = sqrt(3.0 / ((double)n / (double)shape->dim[0]));
        } else if (strstr(name, "weight") != NULL) {
            offset = 1.0;
        }
        for (int64_t i = 0; i < n; i++)
            data[i] = (float)(offset + scale * (double)(float)pattern((uint32_t)k, (uint32_t)i));
    }
}
