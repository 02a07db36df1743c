/* What the tests of networks share: recorded files as words, the pattern that
 * stands in for weights, and components built from overrides. */
#ifndef KILN_TESTS_SUPPORT_NN_SUPPORT_H
#define KILN_TESTS_SUPPORT_NN_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/parse.h"
#include "kiln.h"

/* ---- Recorded files ------------------------------------------------------------ */

enum { RECORD_WORDS = 4096 };

/* A text file that is read line by line, each split at blanks. */
typedef struct Record {
    char *text, *next;
    char *word[RECORD_WORDS];
    size_t words;
} Record;

static inline void record_open(Record *record, const char *name)
{
    char path[256];
    size_t size;
    KilnError err = { 0 };

    snprintf(path, sizeof(path), "tests/data/models/%s", name);
    if (kiln_file_read(path, 1 << 24, &record->text, &size, &err) < 0)
        fail_msg("%s", err.text);
    record->next = record->text;
}

static inline void record_close(Record *record)
{
    free(record->text);
}

/* Split the next line; false at the end of the file. */
static inline bool record_line(Record *record)
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

static inline bool record_is(const Record *record, const char *keyword)
{
    return record->words > 0 && strcmp(record->word[0], keyword) == 0;
}

/* Open a file and go to the line of that keyword and name. */
static inline void record_find(Record *record, const char *file, const char *keyword,
                               const char *name)
{
    record_open(record, file);
    while (record_line(record))
        if (record_is(record, keyword) && strcmp(record->word[1], name) == 0)
            return;
    fail_msg("no %s %s is recorded", keyword, name);
}

static inline double record_f64(const Record *record, size_t i)
{
    double value = 0.0;

    assert_true(i < record->words);
    assert_int_equal(kiln_parse_f64(record->word[i], &value, NULL), KILN_OK);
    return value;
}

static inline int64_t record_i64(const Record *record, size_t i)
{
    int64_t value = 0;

    assert_true(i < record->words);
    assert_int_equal(kiln_parse_i64(record->word[i], &value, NULL), KILN_OK);
    return value;
}

/* ---- The pattern of tests/record/models.py ---------------------------------------- */

static inline double pattern(uint32_t key, uint32_t index)
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

/* The recording's fill(): entry k of the state dict from pattern(k). */
static inline void params_fill(KilnParams *params)
{
    for (size_t k = 0; k < kiln_params_count(params); k++) {
        KilnParam *param = kiln_params_at(params, k);
        const KilnShape *shape = kiln_param_shape(param);
        int64_t n = kiln_shape_count(shape);
        const char *name = kiln_param_name(param);
        double scale = 0.25, offset = 0.0;
        float *data = kiln_param_data(param);

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

/* ---- Components -------------------------------------------------------------------- */

/* A component and what it stands on. */
typedef struct Built {
    KilnRegistry *registry;
    KilnConfig *config;
    KilnInstance *self;
} Built;

static inline void built_free(Built *built)
{
    kiln_instance_free(built->self);
    kiln_config_free(built->config);
    kiln_registry_free(built->registry);
}

/* Build the component at `it` from overrides; NULL-terminated. `err` gets the
 * first thing that is wrong. */
static inline KilnStatus build_overrides(Built *ret, KilnKind kind, const char *const *overrides,
                                         KilnError *err)
{
    KilnErrors *errors = NULL;
    KilnStatus status;

    *ret = (Built) { 0 };
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    status = kiln_registry_new(&ret->registry, err);
    KilnComposeRequest request = {
        .config_path = "tests/data/models",
        .config_name = "empty",
        .overrides = overrides,
        .registry = ret->registry,
    };
    if (status == KILN_OK)
        status = kiln_compose(&request, &ret->config, errors);
    if (status == KILN_OK)
        status = kiln_config_check(ret->config, ret->registry, errors);
    if (kiln_errors_count(errors) > 0)
        kiln_error_set(err, status, "%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    if (status == KILN_OK)
        status = kiln_config_build(ret->config, "it", ret->registry, kind, &ret->self, err);
    return status;
}

/* The same for one component with `key=value` words as options. */
static inline KilnStatus build(Built *ret, KilnKind kind, const char *name, char *const *options,
                               size_t n, KilnError *err)
{
    char texts[16][128];
    const char *overrides[17];

    assert_true(n < 16);
    snprintf(texts[0], sizeof(texts[0]), "++it._target_=%s/%s", kiln_kind_name(kind), name);
    for (size_t i = 0; i < n; i++)
        snprintf(texts[i + 1], sizeof(texts[0]), "++it.%s", options[i]);
    for (size_t i = 0; i <= n; i++)
        overrides[i] = texts[i];
    overrides[n + 1] = NULL;
    return build_overrides(ret, kind, overrides, err);
}

#endif
