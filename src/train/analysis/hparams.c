/* Hyperparameters out of the histories of a config's values. */
#include "train/analysis/hparams.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/provenance/origins_file.h"

/* Everything below these keys belongs to the run, not to what is trained. */
static const char *const left_out[] = { "kiln", "callbacks", "logger", "ckpt_path", "resume" };

static bool of_the_run(const char *key)
{
    size_t length = strcspn(key, ".");

    for (size_t i = 0; i < KILN_COUNT(left_out); i++)
        if (strlen(left_out[i]) == length && strncmp(key, left_out[i], length) == 0)
            return true;
    return false;
}

static KilnStatus collect_stories(const KilnConfig *config, const char *origins,
                                  KilnValueHistories *ret, KilnError *err)
{
    return origins != NULL ? kiln_histories_resume(config, origins, ret, err)
                           : kiln_histories_collect(config, ret, err);
}

/* By the words of kiln_origin_write, which origins.yaml has, too. */
static bool is_default(const KilnValueChange *step)
{
    return kiln_starts_with(step->origin, "default of ");
}

/* "[32, 64]" or "0.1", resolved, in `arena`; NULL when it is no value of one line. */
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

/* Is it at its component's default, or no value at all? */
static bool uninteresting(const KilnValueHistory *story)
{
    const KilnValueChange *newest = &story->changes[0], *oldest = &story->changes[story->count - 1];

    if (!story->is_set || newest->value == NULL || is_default(newest) ||
        newest->value->kind == KILN_NODE_MAP)
        return true;
    return oldest->value != NULL && is_default(oldest) && same_value(newest->value, oldest->value);
}

/* `sampler: {_target_: shuffle}` where `sampler: shuffle` is the default. */
static bool is_default_component(const KilnValueHistories *stories, const KilnValueHistory *story)
{
    const size_t length = strlen(story->key);
    const size_t parent = length > strlen("._target_") ? length - strlen("._target_") : 0;

    if (parent == 0 || !kiln_ends_with(story->key, "._target_"))
        return false;
    for (size_t i = 0; i < stories->count; i++) {
        const KilnValueHistory *other = &stories->list[i];

        if (other->count == 0 || strncmp(other->key, story->key, parent) != 0 ||
            other->key[parent] != '\0')
            continue;
        const KilnConfigNode *oldest = other->changes[other->count - 1].value;
        return oldest != NULL && oldest->layer == KILN_LAYER_DEFAULT &&
               same_value(oldest, story->changes[0].value);
    }
    return false;
}

/* `optimizer.lr: ${lr}`: listed once, under the key that has the value. */
static bool told_elsewhere(const KilnValueHistory *story)
{
    const KilnConfigNode *value = story->changes[0].value;

    return value->kind == KILN_NODE_SCALAR && value->text != NULL && value->text[0] == '$' &&
           story->changes[0].references != NULL;
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
    KilnValueHistories stories = { 0 };
    size_t n = 0;
    KilnStatus status = collect_stories(config, origins, &stories, err);

    if (status < 0)
        return status;
    KilnHparam *all = kiln_arena_alloc(arena, (stories.count + 1) * sizeof(*all));
    if (all == NULL)
        return kiln_error_nomem(err, stories.count * sizeof(*all));
    for (size_t i = 0; i < stories.count; i++) {
        const KilnValueHistory *story = &stories.list[i];

        if (story->count == 0 || of_the_run(story->key) || uninteresting(story) ||
            is_default_component(&stories, story) || told_elsewhere(story))
            continue;
        KilnHparam hparam = { .name = name_of(story->key, arena),
                              .value = value_of(config, story->key, arena) };
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

/* Where the run is put and what it goes on from is told elsewhere. */
static bool of_the_place(const char *key)
{
    return kiln_starts_with(key, "kiln.") || strcmp(key, "ckpt_path") == 0 ||
           strcmp(key, "resume") == 0;
}

/* Of "argument 2 `lr=0.1`" what stands before the quote. */
static size_t length_of_place(const char *place)
{
    size_t length = strcspn(place, "`");

    while (length > 0 && place[length - 1] == ' ')
        length--;
    return length;
}

KilnStatus kiln_differences_collect(const KilnConfig *config, const char *origins, KilnArena *arena,
                                    const KilnDifference **ret, size_t *ret_n, KilnError *err)
{
    KilnValueHistories stories = { 0 };
    size_t n = 0;
    KilnStatus status = collect_stories(config, origins, &stories, err);

    if (status < 0)
        return status;
    KilnDifference *all = kiln_arena_alloc(arena, (stories.count + 1) * sizeof(*all));
    if (all == NULL)
        return kiln_error_nomem(err, stories.count * sizeof(*all));
    for (size_t i = 0; i < stories.count; i++) {
        const KilnValueHistory *story = &stories.list[i];

        if (story->count == 0 || of_the_place(story->key) || uninteresting(story) ||
            is_default_component(&stories, story) || told_elsewhere(story))
            continue;
        const char *place = story->changes[0].origin;
        KilnDifference difference = {
            .key = name_of(story->key, arena),
            .value = value_of(config, story->key, arena),
            .from = kiln_arena_strndup(arena, place, length_of_place(place)),
            .shipped = kiln_starts_with(place, "kiln:"),
        };
        if (difference.key != NULL && difference.value != NULL && difference.from != NULL)
            all[n++] = difference;
    }
    *ret = all;
    *ret_n = n;
    return KILN_OK;
}
