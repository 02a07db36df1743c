/* What the fuzz targets share. Each target is one file fuzz_NAME.c with libFuzzer's entry, its
 * inputs start from corpus/NAME, and what once failed stays there as a file crash-*. `make fuzz`
 * runs them all: SECONDS=1800 for long, FUZZ=yaml for one. A property that does not hold is a crash
 * like any other: the targets check more than memory. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/compose.h"
#include "config/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* End here, loudly: what must hold does not. */
static inline void fuzz_require(bool holds, const char *what, const char *detail)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n%s\n", what, detail);
    abort();
}

/* A copy with a NUL at its end, in the heap so that reading past it is seen. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* A refusal says why. */
static inline void fuzz_check_message(KilnStatus status, const KilnError *err)
{
    fuzz_require(status >= 0 || err->text[0] != '\0', "refused without a word",
                 kiln_status_name(status));
}

static inline double fuzz_number(const char *text)
{
    const char *p = text + (*text == '-');

    if (strcasecmp(p, ".nan") == 0)
        return NAN;
    if (strcasecmp(p, ".inf") == 0)
        return *text == '-' ? -INFINITY : INFINITY;
    return strtod(text, NULL);
}

/* Equal in type and value; not a number is equal to itself here. */
static inline bool fuzz_same_scalar(const KilnConfigNode *a, const KilnConfigNode *b)
{
    if (a->scalar != KILN_SCALAR_FLOAT || b->scalar != KILN_SCALAR_FLOAT)
        return a->scalar == b->scalar && kiln_node_equal(a, b);
    double x = fuzz_number(a->text), y = fuzz_number(b->text);
    return x == y || (isnan(x) && isnan(y));
}

static inline bool fuzz_same(const KilnConfigNode *a, const KilnConfigNode *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (a->kind == KILN_NODE_SCALAR)
        return fuzz_same_scalar(a, b);
    for (size_t i = 0; i < a->count; i++) {
        const KilnEntry *other = a->entries[i].key != NULL ? kiln_node_entry(b, a->entries[i].key)
                                                           : &b->entries[i];

        if (other == NULL || !fuzz_same(a->entries[i].value, other->value))
            return false;
    }
    return true;
}

#endif
