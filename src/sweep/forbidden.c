/* Combinations of values that do not run, kiln.sweeper.forbid: "model=resnet,vit batch_size>128".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "sweep/sweep_state.h"

/* One part of a combination. */
typedef struct Clause {
    size_t axis;
    const bool *values; /* KEY=VALUE,VALUE: by value of the axis; NULL: a comparison */
    char relation;      /* '<', '>' or '=' */
    bool or_equal;      /* <=, >= */
    double number;
} Clause;

typedef struct KilnForbidden {
    const char *text;
    Clause *clauses;
    size_t n_clauses;
} KilnForbidden;

/* The text after the = of a value. */
static const char *text_of(const KilnAxis *axis, size_t index)
{
    const char *key, *value;

    (void)kiln_override_split(axis->overrides[index], &key, &value);
    return value;
}

/* ---- Points ---------------------------------------------------------------------------------- */

/* NaN: the value is no number. */
static double number_of(const KilnAxis *axis, KilnAxisValue value)
{
    double number = (double)NAN;

    if (kiln_axis_is_interval(axis))
        return value.number;
    return kiln_parse_f64(text_of(axis, value.index), &number, NULL) >= 0 ? number : (double)NAN;
}

static bool is_true(const Clause *clause, const KilnSpace *space, const KilnAxisValue *point)
{
    const KilnAxis *axis = space->axes[clause->axis];

    if (!kiln_axis_is_active(space, clause->axis, point))
        return false;
    if (clause->values != NULL)
        return clause->values[point[clause->axis].index];
    const double number = number_of(axis, point[clause->axis]);
    if (number == clause->number)
        return clause->or_equal || clause->relation == '=';
    return (clause->relation == '<' && number < clause->number) ||
           (clause->relation == '>' && number > clause->number);
}

const char *kiln_sweep_forbids(const KilnSweep *sweep, const KilnAxisValue *point)
{
    for (size_t i = 0; i < sweep->rank->forbid_count; i++) {
        const KilnForbidden *forbidden = &sweep->forbidden[i];
        size_t n = 0;

        while (n < forbidden->n_clauses &&
               is_true(&forbidden->clauses[n], &sweep->arguments.space, point))
            n++;
        if (n == forbidden->n_clauses)
            return forbidden->text;
    }
    return NULL;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* Reads one text. */
typedef struct Reader {
    KilnSweep *sweep;
    const char *text;
    KilnError *err;
} Reader;

static KilnStatus refuse(const Reader *reader, const char *wrong, const char *why, const char *near)
{
    return kiln_error_set(reader->err, KILN_E_TYPE,
                          "kiln.sweeper.forbid: \"%s\": '%s' %s%s%s%s; write values of the sweep's "
                          "keys, such as \"model=resnet,vit batch_size>128\"",
                          reader->text, wrong, why, near != NULL ? " (did you mean " : "",
                          near != NULL ? near : "", near != NULL ? "?)" : "");
}

static KilnStatus find_axis(const Reader *reader, const char *key, size_t *ret)
{
    const KilnSpace *space = &reader->sweep->arguments.space;
    const char **names = calloc(space->count + 1, sizeof(*names));

    if (names == NULL)
        return kiln_error_nomem(reader->err, space->count);
    for (*ret = 0; *ret < space->count; (*ret)++) {
        names[*ret] = space->axes[*ret]->key + strspn(space->axes[*ret]->key, "+");
        if (strcmp(names[*ret], key) == 0)
            break;
    }
    if (*ret == space->count)
        refuse(reader, key, "is no key of the sweep", kiln_nearest(key, names, space->count));
    free(names);
    return *ret < space->count ? KILN_OK : reader->err->status;
}

/* Mark a value of a choice or range. */
static KilnStatus mark_value(const Reader *reader, const KilnAxis *axis, const char *value,
                             bool *values)
{
    const char **texts = calloc(axis->count + 1, sizeof(*texts));
    bool found = false;

    if (texts == NULL)
        return kiln_error_nomem(reader->err, axis->count);
    for (size_t i = 0; i < axis->count; i++) {
        texts[i] = text_of(axis, i);
        if (strcmp(texts[i], value) == 0)
            values[i] = found = true;
    }
    if (!found)
        refuse(reader, value, "is no value of the key", kiln_nearest(value, texts, axis->count));
    free(texts);
    return found ? KILN_OK : reader->err->status;
}

static KilnStatus read_values(const Reader *reader, const KilnAxis *axis, char *list,
                              Clause *clause)
{
    bool *values = kiln_arena_alloc(&reader->sweep->arena, axis->count + 1);
    KilnStatus status = values != NULL ? KILN_OK : kiln_error_nomem(reader->err, axis->count);

    while (status >= 0 && list != NULL) {
        char *comma = strchr(list, ',');

        if (comma != NULL)
            *comma++ = '\0';
        status = mark_value(reader, axis, list, values);
        list = comma;
    }
    clause->values = values;
    return status;
}

/* "KEY=VALUE,VALUE", "KEY>NUMBER"; `part` is changed. */
static KilnStatus read_clause(const Reader *reader, char *part, Clause *clause)
{
    const KilnSpace *space = &reader->sweep->arguments.space;
    char *at = part + strcspn(part, "=<>");
    const char relation = *at;

    if (relation == '\0' || at == part)
        return refuse(reader, part, "is no comparison", NULL);
    *at++ = '\0';
    if (relation != '=' && *at == '=') {
        clause->or_equal = true;
        at++;
    }
    KilnStatus status = find_axis(reader, part, &clause->axis);
    if (status < 0)
        return status;
    clause->relation = relation;
    if (relation == '=' && !kiln_axis_is_interval(space->axes[clause->axis]))
        return read_values(reader, space->axes[clause->axis], at, clause);
    return kiln_parse_f64(at, &clause->number, NULL) >= 0
               ? KILN_OK
               : refuse(reader, at, "is no number", NULL);
}

/* `words` is a copy of the text, which is changed. */
static KilnStatus read_clauses(const Reader *reader, char *words, KilnForbidden *forbidden)
{
    KilnStatus status = KILN_OK;
    size_t n = 1;

    for (const char *p = words; *p != '\0'; p++)
        n += *p == ' ';
    forbidden->clauses = kiln_arena_alloc(&reader->sweep->arena, n * sizeof(*forbidden->clauses));
    if (forbidden->clauses == NULL)
        return kiln_error_nomem(reader->err, n);
    while (*(words += strspn(words, " ")) != '\0' && status >= 0) {
        char *end = words + strcspn(words, " ");
        const bool last = *end == '\0';

        *end = '\0';
        status = read_clause(reader, words, &forbidden->clauses[forbidden->n_clauses++]);
        words = last ? end : end + 1;
    }
    return status >= 0 && forbidden->n_clauses == 0 ? refuse(reader, "", "forbids everything", NULL)
                                                    : status;
}

KilnStatus kiln_sweep_read_forbidden(KilnSweep *sweep, KilnError *err)
{
    const size_t n = sweep->rank->forbid_count;
    KilnStatus status = KILN_OK;

    sweep->forbidden = kiln_arena_alloc(&sweep->arena, (n + 1) * sizeof(*sweep->forbidden));
    if (sweep->forbidden == NULL)
        return kiln_error_nomem(err, n);
    for (size_t i = 0; i < n && status >= 0; i++) {
        const Reader reader = { .sweep = sweep, .text = sweep->rank->forbid[i], .err = err };
        char *words = kiln_arena_strdup(&sweep->arena, reader.text);

        sweep->forbidden[i].text = reader.text;
        status = words != NULL ? read_clauses(&reader, words, &sweep->forbidden[i])
                               : kiln_error_nomem(err, 1);
    }
    return status;
}
