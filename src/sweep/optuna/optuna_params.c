/* Finds the parameters that a sweep has for Optuna, and their distributions. */
#include "sweep/optuna/optuna_params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/json.h"
#include "base/parse.h"

/* ---- Values ------------------------------------------------------------------------------ */

static bool has_key(const char *override, const char *key, const char **ret_value)
{
    const char *its_key;
    const size_t n = kiln_override_split(override, &its_key, ret_value);

    return strncmp(its_key, key, n) == 0 && key[n] == '\0';
}

/* The number of a text; false: it is none, or not finite. */
static bool number_of(const char *text, double *ret)
{
    return kiln_parse_f64(text, ret, NULL) >= 0 && isfinite(*ret);
}

static bool is_whole(const char *text)
{
    int64_t number;

    return kiln_parse_i64(text, &number, NULL) >= 0;
}

/* A choice as Python has it. */
static json_t *choice_json(const char *text)
{
    int64_t whole;
    double number;

    if (strcmp(text, "null") == 0)
        return json_null();
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)
        return json_boolean(text[0] == 't' || text[0] == 'T');
    if (kiln_parse_i64(text, &whole, NULL) >= 0)
        return json_integer((json_int_t)whole);
    return number_of(text, &number) ? json_real(number) : kiln_json_text(text);
}

static size_t find_choice(const KilnOptunaParam *param, const char *text)
{
    size_t i = 0;

    while (i < param->n_choices && strcmp(param->choices[i], text) != 0)
        i++;
    return i;
}

static bool add_choice(KilnOptunaParam *param, KilnArena *arena, const char *text)
{
    if (param->n_choices > KILN_OPTUNA_CHOICES || find_choice(param, text) < param->n_choices)
        return true;
    if (!KILN_ARENA_RESERVE(arena, param->choices, param->choices_capacity, param->n_choices + 1))
        return false;
    param->choices[param->n_choices++] = text;
    return true;
}

/* ---- range(): a distribution with steps --------------------------------------------------- */

/* A value in units of 10^-digits; false: it is not a whole number of them. The quotient below is
 * the double nearest to the decimal number, so Python prints that number and its decimal
 * arithmetic is exact, too. */
static bool in_units(double value, int digits, int64_t *ret)
{
    static const double largest = 1e15;
    const double unit = pow(10.0, digits), units = round(value * unit);

    if (!(fabs(units) < largest) || units / unit != value)
        return false;
    *ret = (int64_t)units;
    return true;
}

/* Do all values of the axis lie in whole steps of 10^-digits above the lowest? */
static bool fit_steps(const KilnAxis *axis, int digits, KilnOptunaParam *param)
{
    int64_t first = 0, second = 0, last = 0;

    if (axis->count < 2 || !in_units(axis->low, digits, &first) ||
        !in_units(axis->high, digits, &last))
        return false;
    param->kind = KILN_OPTUNA_INT;
    for (size_t i = 0; i < axis->count; i++) {
        const char *text;
        double value;
        int64_t units;

        if (!has_key(axis->overrides[i], param->key, &text) || !number_of(text, &value) ||
            !in_units(value, digits, &units))
            return false;
        if (i == 1)
            second = units;
        if (i >= 1 && (second == first || units != first + (int64_t)i * (second - first)))
            return false;
        if (!is_whole(text))
            param->kind = KILN_OPTUNA_FLOAT;
    }
    param->low = fmin(axis->low, axis->high);
    param->high = fmax(axis->low, axis->high);
    param->step = (double)llabs(second - first) / pow(10.0, digits);
    return true;
}

/* Is the value on one of the steps? */
static bool is_step(const KilnOptunaParam *param, double value)
{
    static const double nearly = 1e-9;
    const double steps = (value - param->low) / param->step;

    return fabs(steps - round(steps)) < nearly;
}

/* ---- One parameter ----------------------------------------------------------------------- */

/* Can the distribution produce the value? */
static bool covers(const KilnOptunaParam *param, const char *text)
{
    double value;

    if (param->kind == KILN_OPTUNA_CATEGORICAL)
        return find_choice(param, text) < param->n_choices;
    return number_of(text, &value) && value >= param->low && value <= param->high &&
           (param->kind == KILN_OPTUNA_FLOAT || value == floor(value)) &&
           (param->step <= 0.0 || is_step(param, value));
}

static void widen(KilnOptunaParam *param, double low, double high, bool whole)
{
    param->low = fmin(param->low, low);
    param->high = fmax(param->high, high);
    if (!whole)
        param->kind = KILN_OPTUNA_FLOAT;
    if (param->low <= 0.0)
        param->log = false;
}

/* The interval around all intervals of the key and all other values; false: there is none, or a
 * value is no number. */
static bool make_interval(const KilnSpace *space, KilnOptunaParam *param)
{
    bool any = false;
    double value;

    param->kind = KILN_OPTUNA_INT;
    for (size_t i = 0; i < space->count; i++) {
        const KilnAxis *axis = space->axes[i];
        const char *text;

        if (!kiln_axis_is_interval(axis) || !has_key(axis->key, param->key, &text))
            continue;
        if (!any) {
            param->low = axis->low;
            param->high = axis->high;
        }
        param->log = any ? param->log && axis->log : axis->log;
        widen(param, axis->low, axis->high, axis->kind == KILN_AXIS_INT);
        any = true;
    }
    for (size_t i = 0; i < param->n_choices && any; i++) {
        if (!number_of(param->choices[i], &value))
            return false;
        widen(param, value, value, value == floor(value));
    }
    return any;
}

/* The key's only axis is a range() with steps, and every job has one of them. */
static bool make_steps(const KilnSweep *sweep, KilnOptunaParam *param)
{
    enum { MAX_DIGITS = 12 };
    const KilnSpace *space = &sweep->arguments.space;
    const KilnAxis *only = NULL;
    const char *text;
    bool fits = false;

    for (size_t i = 0; i < space->count; i++) {
        if (!has_key(space->axes[i]->key, param->key, &text))
            continue;
        if (only != NULL || space->axes[i]->kind != KILN_AXIS_RANGE)
            return false;
        only = space->axes[i];
    }
    for (int digits = 0; only != NULL && digits <= MAX_DIGITS && !fits; digits++)
        fits = fit_steps(only, digits, param);
    for (size_t i = 0; i < sweep->jobs.count && fits; i++)
        for (const char *const *at = sweep->jobs.items[i].overrides; *at != NULL; at++)
            if (has_key(*at, param->key, &text))
                fits = fits && covers(param, text);
    return fits;
}

static bool collect_choices(const KilnSweep *sweep, KilnArena *arena, KilnOptunaParam *param)
{
    const KilnSpace *space = &sweep->arguments.space;
    const char *text;

    for (size_t i = 0; i < space->count; i++)
        for (size_t k = 0; k < space->axes[i]->count; k++)
            if (has_key(space->axes[i]->overrides[k], param->key, &text) &&
                !add_choice(param, arena, text))
                return false;
    for (size_t i = 0; i < sweep->jobs.count; i++)
        for (const char *const *at = sweep->jobs.items[i].overrides; *at != NULL; at++)
            if (has_key(*at, param->key, &text) && !add_choice(param, arena, text))
                return false;
    return true;
}

static json_t *choices_json(const KilnOptunaParam *param)
{
    json_t *choices = json_array();

    for (size_t i = 0; i < param->n_choices; i++)
        kiln_json_add(&choices, choice_json(param->choices[i]));
    return choices;
}

static json_t *distribution_json(const KilnOptunaParam *param)
{
    if (param->kind == KILN_OPTUNA_CATEGORICAL)
        return json_pack("{s:s, s:{s:o}}", "name", "CategoricalDistribution", "attributes",
                         "choices", choices_json(param));
    if (param->kind == KILN_OPTUNA_INT)
        return json_pack("{s:s, s:{s:b, s:I, s:I, s:I}}", "name", "IntDistribution", "attributes",
                         "log", param->log, "step", (json_int_t)fmax(param->step, 1.0), "low",
                         (json_int_t)param->low, "high", (json_int_t)param->high);
    return json_pack("{s:s, s:{s:b, s:o, s:f, s:f}}", "name", "FloatDistribution", "attributes",
                     "log", param->log, "step",
                     param->step > 0.0 ? json_real(param->step) : json_null(), "low", param->low,
                     "high", param->high);
}

static bool make_param(const KilnSweep *sweep, KilnArena *arena, KilnOptunaParam *param)
{
    if (!make_steps(sweep, param)) {
        *param = (KilnOptunaParam) { .key = param->key };
        if (!collect_choices(sweep, arena, param))
            return false;
        if (!make_interval(&sweep->arguments.space, param))
            param->kind = KILN_OPTUNA_CATEGORICAL;
    }
    if (param->kind == KILN_OPTUNA_CATEGORICAL && param->n_choices > KILN_OPTUNA_CHOICES)
        return true;
    json_t *json = distribution_json(param);
    char *text = kiln_json_dump(json, JSON_REAL_PRECISION(17));

    json_decref(json);
    param->distribution = text != NULL ? kiln_arena_strdup(arena, text) : NULL;
    free(text);
    return param->distribution != NULL;
}

/* ---- All parameters ------------------------------------------------------------------------ */

static KilnOptunaParam *find(const KilnOptunaParams *params, const char *override,
                             const char **ret_value)
{
    for (size_t i = 0; i < params->count; i++)
        if (has_key(override, params->items[i].key, ret_value))
            return &params->items[i];
    return NULL;
}

/* Add a key, the part before the = of `text`. */
static bool add_key(KilnOptunaParams *params, KilnArena *arena, const char *text)
{
    const char *key, *value;
    const size_t n = kiln_override_split(text, &key, &value);

    if (find(params, text, &value) != NULL)
        return true;
    params->items[params->count].key = kiln_arena_strndup(arena, key, n);
    return params->items[params->count++].key != NULL;
}

KilnStatus kiln_optuna_params(const KilnSweep *sweep, KilnArena *arena, KilnOptunaParams *ret,
                              KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;
    const char **keys = kiln_results_keys(&sweep->jobs, arena);
    size_t n = 0;

    while (keys != NULL && keys[n] != NULL)
        n++;
    *ret = (KilnOptunaParams) {
        .items = kiln_arena_alloc(arena, (space->count + n + 1) * sizeof(*ret->items)),
    };
    bool good = keys != NULL && ret->items != NULL;
    for (size_t i = 0; i < space->count && good; i++)
        if (space->axes[i]->count != 1)
            good = add_key(ret, arena, space->axes[i]->key);
    for (size_t i = 0; i < n && good; i++)
        good = add_key(ret, arena, keys[i]);
    for (size_t i = 0; i < ret->count && good; i++)
        good = make_param(sweep, arena, &ret->items[i]);
    return good ? KILN_OK : kiln_error_nomem(err, n);
}

/* Is it the override of a key with one value? */
static bool is_constant(const KilnSpace *space, const char *override)
{
    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->count == 1 && strcmp(space->axes[i]->overrides[0], override) == 0)
            return true;
    return false;
}

static json_t *internal_value(const KilnOptunaParam *param, const char *text)
{
    double number = (double)find_choice(param, text);

    if (param->kind != KILN_OPTUNA_CATEGORICAL)
        (void)!number_of(text, &number);
    return json_real(number);
}

bool kiln_optuna_values(const KilnSweep *sweep, const KilnOptunaParams *params, const KilnJob *job,
                        json_t **values, json_t **distributions)
{
    bool all = true;

    for (const char *const *at = job->overrides; *at != NULL; at++) {
        const char *text;
        const KilnOptunaParam *param = find(params, *at, &text);
        const bool known = param != NULL ? param->distribution == NULL || covers(param, text)
                                         : is_constant(&sweep->arguments.space, *at);

        all = all && known;
        if (!known || param == NULL || param->distribution == NULL)
            continue;
        kiln_json_put(values, param->key, internal_value(param, text));
        kiln_json_put(distributions, param->key, json_string(param->distribution));
    }
    return all;
}
