/* Checks the arguments of a job that is added by hand, and puts them into the order of the space,
 * in which other jobs have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "config/override/override.h"
#include "config/provenance/error_list.h"
#include "sweep/sweep_state.h"

typedef struct Word {
    const char *key;      /* "lr", "+model.depth": as in an axis */
    const char *override; /* as a job has it: "lr=0.3" */
    bool used;            /* it is the value of an axis */
} Word;

typedef struct Point {
    KilnSweep *sweep;
    Word *words;
    size_t n_words;
    KilnAxisValue *values;  /* by axis; SIZE_MAX: none that the axis lists */
    const char **overrides; /* NULL-terminated */
    size_t n_overrides;
    const KilnAxis *missing; /* the first one without a value; NULL: none */
} Point;

/* ---- Words ----------------------------------------------------------------------------------- */

/* Write the override as the axes of a sweep write theirs. */
static KilnStatus read_word(Point *point, const char *text, KilnError *err)
{
    KilnArena *arena = &point->sweep->arena;
    KilnOverride override = { 0 };
    KilnStatus status = kiln_override_read(arena, text, point->n_words + 1, &override, err);
    KilnText written = { 0 };

    if (status < 0)
        return status;
    if (override.problem != NULL) {
        *err = *override.problem;
        return err->status;
    }
    if (kiln_override_is_own(&override))
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s: options of kiln are the same for all jobs of a sweep", text);
    if (override.sweep != NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s: a job has one value of each key; quote a text with commas, or "
                              "add one job at a time",
                              text);
    Word *word = &point->words[point->n_words++];
    word->key = kiln_override_target(arena, &override);
    word->override = text;
    if (word->key != NULL && override.value != NULL) {
        kiln_text_printf(&written, "%s=", word->key);
        kiln_value_written(override.value, &written);
        word->override = kiln_text_to_arena(&written, arena);
    }
    return word->key != NULL && word->override != NULL ? KILN_OK
                                                       : kiln_error_nomem(err, strlen(text));
}

static KilnStatus read_words(Point *point, const char *const *words, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (; *words != NULL && status >= 0; words++) {
        status = read_word(point, *words, err);
        for (size_t i = 0; i + 1 < point->n_words && status >= 0; i++)
            if (strcmp(point->words[i].key, point->words[point->n_words - 1].key) == 0)
                status = kiln_error_set(err, KILN_E_USAGE, "%s is given twice",
                                        point->words[i].key);
    }
    return status;
}

/* ---- Values of axes --------------------------------------------------------------------- */

static Word *word_of(const Point *point, const KilnAxis *axis)
{
    for (size_t i = 0; i < point->n_words; i++)
        if (strcmp(point->words[i].key, axis->key) == 0)
            return &point->words[i];
    return NULL;
}

static size_t index_of(const KilnAxis *axis, const char *override)
{
    for (size_t i = 0; i < axis->count; i++)
        if (strcmp(axis->overrides[i], override) == 0)
            return i;
    return SIZE_MAX;
}

static void put_override(Point *point, const char *override)
{
    point->overrides[point->n_overrides++] = override;
}

/* An axis that has a value at this point. */
static void put_value(Point *point, size_t axis)
{
    const KilnAxis *at = point->sweep->arguments.space.axes[axis];
    Word *word = word_of(point, at);

    if (word != NULL) {
        if (!kiln_axis_is_interval(at))
            point->values[axis].index = index_of(at, word->override);
        word->used = true;
        put_override(point, word->override);
    } else if (at->count == 1) {
        put_override(point, at->overrides[0]); /* the same in all jobs */
    } else if (point->missing == NULL) {
        point->missing = at;
    }
}

/* Does the space list the values on which the axis depends? */
static bool parents_are_listed(const Point *point, const KilnAxis *axis)
{
    for (; axis->active_for != NULL; axis = point->sweep->arguments.space.axes[axis->parent])
        if (point->values[axis->parent].index == SIZE_MAX)
            return false;
    return true;
}

static KilnStatus put_values(Point *point, KilnError *err)
{
    const KilnSpace *space = &point->sweep->arguments.space;

    for (size_t i = 0; i < space->count; i++)
        if (kiln_axis_is_active(space, i, point->values))
            put_value(point, i);
    for (size_t i = 0; i < space->count; i++) {
        const KilnAxis *axis = space->axes[i];
        const Word *word = word_of(point, axis);

        if (word != NULL && !word->used && parents_are_listed(point, axis))
            return kiln_error_set(err, KILN_E_KEY,
                                  "%s: the sweep varies it only for other values of %s", axis->key,
                                  space->axes[axis->parent]->key);
    }
    for (size_t i = 0; i < point->n_words; i++)
        if (!point->words[i].used) /* a key that the sweep does not vary */
            put_override(point, point->words[i].override);
    return KILN_OK;
}

/* ---- Checks -----------------------------------------------------------------------------------
 */

static bool is_word(const Point *point, const char *override)
{
    for (size_t i = 0; i < point->n_words; i++)
        if (point->words[i].override == override)
            return true;
    return false;
}

/* With the words first: messages number the overrides. */
static KilnStatus check_config(const Point *point, KilnErrors *errors)
{
    const char **list = calloc(point->n_overrides + 1, sizeof(*list));
    KilnConfig *config = NULL;
    size_t n = 0;

    if (list == NULL)
        return KILN_E_NOMEM;
    for (size_t i = 0; i < point->n_words; i++)
        list[n++] = point->words[i].override;
    for (size_t i = 0; i < point->n_overrides; i++)
        if (!is_word(point, point->overrides[i]))
            list[n++] = point->overrides[i];
    KilnStatus status = kiln_sweep_compose_job(point->sweep, list, n, point->sweep->jobs.count,
                                               true, NULL, &config, errors);
    kiln_config_free(config);
    free(list);
    return status;
}

static KilnStatus check_interval(const KilnAxis *axis, const Word *word, KilnError *err)
{
    const char *text = word->override + strlen(axis->key) + 1;
    const bool whole = axis->kind == KILN_AXIS_INT;
    char low[KILN_F64_TEXT], high[KILN_F64_TEXT];
    KilnAxisValue value = { .index = 0 };

    if (kiln_parse_f64(text, &value.number, NULL) >= 0 && kiln_axis_accepts(axis, value))
        return KILN_OK;
    if (whole) {
        snprintf(low, sizeof(low), "%.0f", axis->low);
        snprintf(high, sizeof(high), "%.0f", axis->high);
    } else {
        kiln_format_f64(axis->low, low, sizeof(low));
        kiln_format_f64(axis->high, high, sizeof(high));
    }
    return kiln_error_set(err, KILN_E_RANGE, "%s: %s is not in the sweep's %sinterval(%s,%s)%s",
                          axis->key, text, whole ? "int(" : "", low, high, whole ? ")" : "");
}

static KilnStatus check_axes(const Point *point, KilnError *err)
{
    const KilnSpace *space = &point->sweep->arguments.space;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < space->count && status >= 0; i++) {
        const Word *word = word_of(point, space->axes[i]);

        if (word != NULL && kiln_axis_is_interval(space->axes[i]) &&
            kiln_axis_is_active(space, i, point->values))
            status = check_interval(space->axes[i], word, err);
    }
    if (status < 0 || point->missing == NULL)
        return status;
    return kiln_error_set(err, KILN_E_MISSING,
                          "%s: the sweep varies it, so a job needs a value: add %s=VALUE",
                          point->missing->key, point->missing->key);
}

static KilnStatus make_point(Point *point, const char *const *words, KilnError *err)
{
    const size_t n_axes = point->sweep->arguments.space.count;
    KilnArena *arena = &point->sweep->arena;
    size_t n = 0;

    while (words[n] != NULL)
        n++;
    point->words = kiln_arena_alloc(arena, (n + 1) * sizeof(*point->words));
    point->values = kiln_arena_alloc(arena, (n_axes + 1) * sizeof(*point->values));
    point->overrides = kiln_arena_alloc(arena, (n_axes + n + 1) * sizeof(*point->overrides));
    if (point->words == NULL || point->values == NULL || point->overrides == NULL)
        return kiln_error_nomem(err, n);
    KilnStatus status = read_words(point, words, err);
    return status >= 0 ? put_values(point, err) : status;
}

/* The config is checked first: it knows a misspelt key, of which the space only knows that another
 * one is missing. */
KilnStatus kiln_sweep_check_point(KilnSweep *sweep, const char *const *words,
                                  const char *const **ret_overrides, bool *ret_is_point,
                                  KilnErrors *errors)
{
    const KilnSpace *space = &sweep->arguments.space;
    Point point = { .sweep = sweep };
    KilnAxisValue *located = kiln_arena_alloc(&sweep->arena, (space->count + 1) * sizeof(*located));
    KilnError err = { 0 };

    if (located == NULL)
        kiln_error_nomem(&err, space->count);
    else if (make_point(&point, words, &err) >= 0) {
        KilnStatus status = check_config(&point, errors);

        if (status < 0)
            return status;
        (void)!check_axes(&point, &err);
    }
    if (err.status < 0)
        return kiln_errors_add(errors, &err);
    *ret_overrides = point.overrides;
    *ret_is_point = kiln_space_locate(space, point.overrides, located);
    return KILN_OK;
}
