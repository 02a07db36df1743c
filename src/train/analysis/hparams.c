/* Collects hyperparameters from the histories of a config's values. */
#include "train/analysis/hparams.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/provenance/origin.h"
#include "config/provenance/origins_file.h"

/* Keys that say how and where to run, not what is trained; with everything below them. */
static const char *const run_keys[] = { "kiln", "callbacks", "logger", "ckpt_path", "resume" };

static bool is_run_key(const char *key)
{
    size_t length = strcspn(key, ".");

    for (size_t i = 0; i < KILN_COUNT(run_keys); i++)
        if (strlen(run_keys[i]) == length && strncmp(key, run_keys[i], length) == 0)
            return true;
    return false;
}

static KilnStatus collect_histories(const KilnConfig *config, const char *origins,
                                    KilnValueHistories *ret, KilnError *err)
{
    return origins != NULL ? kiln_histories_resume(config, origins, ret, err)
                           : kiln_histories_collect(config, ret, err);
}

/* Whether a change is a component's default, by the text of kiln_origin_write (also in
 * origins.yaml). */
static bool is_default_change(const KilnValueChange *step)
{
    return kiln_starts_with(step->origin, "default of ");
}

/* The resolved value, "[32, 64]" or "0.1", in `arena`; NULL when it is longer than a line. */
static const char *value_of(const KilnConfig *config, const char *key, KilnArena *arena)
{
    char *text = NULL;
    const char *ret = NULL;

    if (kiln_config_yaml(config, key, true, &text, NULL) >= 0) {
        size_t length = strlen(text);

        while (length > 0 && text[length - 1] == '\n')
            text[--length] = '\0';
        if (length > 0 && strchr(text, '\n') == NULL)
            ret = kiln_arena_strdup(arena, text);
    }
    free(text);
    return ret;
}

static bool same_value(const KilnConfigNode *a, const KilnConfigNode *b)
{
    double x, y;

    if (a->kind != b->kind || a->count != b->count)
        return false;
    for (size_t i = 0; a->kind != KILN_NODE_SCALAR && i < a->count; i++)
        if (!same_value(a->entries[i].value, b->entries[i].value))
            return false;
    if (a->kind != KILN_NODE_SCALAR ||
        (a->text != NULL && b->text != NULL && strcmp(a->text, b->text) == 0))
        return true;
    return a->text != NULL && b->text != NULL && kiln_parse_f64(a->text, &x, NULL) >= 0 &&
           kiln_parse_f64(b->text, &y, NULL) >= 0 && x == y;
}

/* Whether the value is its component's default, or there is none. */
static bool is_default(const KilnValueHistory *history)
{
    const KilnValueChange *newest = &history->changes[0],
                          *oldest = &history->changes[history->count - 1];

    if (!history->is_set || newest->value == NULL || is_default_change(newest) ||
        newest->value->kind == KILN_NODE_MAP)
        return true;
    return oldest->value != NULL && is_default_change(oldest) &&
           same_value(newest->value, oldest->value);
}

/* Whether it is `sampler: {_target_: shuffle}` where `sampler: shuffle` is the default. */
static bool is_default_component(const KilnValueHistories *histories,
                                 const KilnValueHistory *history)
{
    const size_t length = strlen(history->key);
    const size_t parent = length > strlen("._target_") ? length - strlen("._target_") : 0;

    if (parent == 0 || !kiln_ends_with(history->key, "._target_"))
        return false;
    for (size_t i = 0; i < histories->count; i++) {
        const KilnValueHistory *other = &histories->list[i];

        if (other->count == 0 || strncmp(other->key, history->key, parent) != 0 ||
            other->key[parent] != '\0')
            continue;
        const KilnConfigNode *oldest = other->changes[other->count - 1].value;
        return oldest != NULL && oldest->layer == KILN_LAYER_DEFAULT &&
               same_value(oldest, history->changes[0].value);
    }
    return false;
}

/* Whether it is a reference, `optimizer.lr: ${lr}`: the key that has the value is listed. */
static bool is_reference(const KilnValueHistory *history)
{
    const KilnConfigNode *value = history->changes[0].value;

    return value->kind == KILN_NODE_SCALAR && value->text != NULL && value->text[0] == '$' &&
           history->changes[0].references != NULL;
}

/* Whether the value was set, and to something else than its default. What was inferred from the
 * data follows from other values. */
static bool differs(const KilnValueHistories *histories, const KilnValueHistory *history)
{
    return history->count > 0 && !is_default(history) &&
           !kiln_starts_with(history->changes[0].origin, KILN_ORIGIN_INFERRED) &&
           !is_default_component(histories, history) && !is_reference(history);
}

static void classify(KilnHparam *hparam)
{
    bool yes = strcmp(hparam->value, "true") == 0;

    if (yes || strcmp(hparam->value, "false") == 0) {
        hparam->kind = KILN_HPARAM_BOOL;
        hparam->number = yes ? 1.0 : 0.0;
    } else if (kiln_parse_f64(hparam->value, &hparam->number, NULL) >= 0) {
        hparam->kind = KILN_HPARAM_NUMBER;
    }
}

static const char *name_of(const char *key, KilnArena *arena)
{
    size_t length = strlen(key);

    return kiln_ends_with(key, "._target_")
               ? kiln_arena_strndup(arena, key, length - strlen("._target_"))
               : kiln_arena_strdup(arena, key);
}

KilnStatus kiln_hparams_collect(const KilnConfig *config, const char *origins, KilnArena *arena,
                                const KilnHparam **ret, size_t *ret_n, KilnError *err)
{
    KilnValueHistories histories = { 0 };
    size_t n = 0;
    KilnStatus status = collect_histories(config, origins, &histories, err);

    if (status < 0)
        return status;
    KilnHparam *all = kiln_arena_alloc(arena, (histories.count + 1) * sizeof(*all));
    if (all == NULL)
        return kiln_error_nomem(err, histories.count * sizeof(*all));
    for (size_t i = 0; i < histories.count; i++) {
        const KilnValueHistory *history = &histories.list[i];

        if (is_run_key(history->key) || !differs(&histories, history))
            continue;
        KilnHparam hparam = { .name = name_of(history->key, arena),
                              .value = value_of(config, history->key, arena) };
        if (hparam.name == NULL || hparam.value == NULL)
            continue;
        classify(&hparam);
        all[n++] = hparam;
    }
    *ret = all;
    *ret_n = n;
    return KILN_OK;
}

/* ---- For people -------------------------------------------------------------------------- */

/* Keys that the run's other messages show: its folder and the checkpoint it resumes from. */
static bool is_location_key(const char *key)
{
    return kiln_starts_with(key, "kiln.") || strcmp(key, "ckpt_path") == 0 ||
           strcmp(key, "resume") == 0;
}

/* The length of an origin without its snippet: "argument 2 `lr=0.1`" -> "argument 2". */
static size_t origin_length(const char *origin)
{
    size_t length = strcspn(origin, "`");

    while (length > 0 && origin[length - 1] == ' ')
        length--;
    return length;
}

KilnStatus kiln_differences_collect(const KilnConfig *config, const char *origins, KilnArena *arena,
                                    const KilnDifference **ret, size_t *ret_n, KilnError *err)
{
    KilnValueHistories histories = { 0 };
    size_t n = 0;
    KilnStatus status = collect_histories(config, origins, &histories, err);

    if (status < 0)
        return status;
    KilnDifference *all = kiln_arena_alloc(arena, (histories.count + 1) * sizeof(*all));
    if (all == NULL)
        return kiln_error_nomem(err, histories.count * sizeof(*all));
    for (size_t i = 0; i < histories.count; i++) {
        const KilnValueHistory *history = &histories.list[i];

        if (is_location_key(history->key) || !differs(&histories, history))
            continue;
        const char *origin = history->changes[0].origin;
        KilnDifference difference = {
            .key = name_of(history->key, arena),
            .value = value_of(config, history->key, arena),
            .from = kiln_arena_strndup(arena, origin, origin_length(origin)),
            .shipped = kiln_starts_with(origin, "kiln:"),
        };
        if (difference.key != NULL && difference.value != NULL && difference.from != NULL)
            all[n++] = difference;
    }
    *ret = all;
    *ret_n = n;
    return KILN_OK;
}
