/* Splits the arguments of a sweep into axes and the overrides of each value. */
#include "config/sweep/sweep_arguments.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "config/override/override.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"
#include "config/sweep/conditions.h"
#include "config/sweep/decimal.h"

typedef struct Splitter {
    KilnArena *arena;
    const KilnComposeHooks *hooks;
    KilnSearch search;
    const KilnConfig *config;
    KilnErrors *errors;
    KilnAxisDraft **drafts;
    size_t count, capacity;
    const char **own;
    size_t *own_numbers; /* of the arguments */
    size_t n_own;
    size_t values;     /* of all axes */
    KilnStatus status; /* of the first error */
} Splitter;

static void fail(Splitter *splitter, KilnStatus status)
{
    if (splitter->status >= 0)
        splitter->status = status;
}

static void add_error(Splitter *splitter, const KilnError *err)
{
    fail(splitter, kiln_errors_add(splitter->errors, err));
}

/* ---- Values ------------------------------------------------------------------------- */

/* The argument "key=value" of a job. */
static const char *write_override(Splitter *splitter, const char *key, const KilnConfigNode *value)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s=", key);
    kiln_value_written(value, &text);
    return kiln_text_to_arena(&text, splitter->arena);
}

static void warn_no_match(Splitter *splitter, const KilnOverride *override,
                          const char *const *options)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    for (size_t i = 0; options != NULL && options[i] != NULL; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "; it has ", options[i]);
    kiln_error_set(&err, KILN_E_KEY, "glob() matches no option of the group '%s'%s", override->key,
                   text.data != NULL ? text.data : ", which is not there");
    kiln_error_at(&err, &override->origin);
    kiln_errors_warn(splitter->errors, &err);
    kiln_text_release(&text);
}

/* NULL after an error, or when memory is out. */
static const KilnConfigNode *values_of(Splitter *splitter, const KilnOverride *override)
{
    KilnMaker maker = { .arena = splitter->arena,
                        .origin = override->origin,
                        .layer = KILN_LAYER_ARGUMENT };
    bool glob = override->sweep->kind == KILN_SWEEP_GLOB;
    const char *const *options = glob ? kiln_search_options(&splitter->search, override->key, false)
                                      : NULL;
    KilnError err = { 0 };
    const KilnConfigNode *values = kiln_sweep_value_list(override->sweep, &maker, options, &err);

    if (err.status < 0) {
        kiln_error_prefix(&err, "%s: ", override->key);
        kiln_error_at(&err, &override->origin);
        add_error(splitter, &err);
    }
    if (glob && values != NULL && values->count == 0)
        warn_no_match(splitter, override, options);
    return values;
}

/* ---- Axes ----------------------------------------------------------------------------- */

static void remove_draft(Splitter *splitter, size_t at)
{
    splitter->count--;
    memmove(&splitter->drafts[at], &splitter->drafts[at + 1],
            (splitter->count - at) * sizeof(KilnAxisDraft *));
}

/* The axis for an override: the one that it replaces, else a new one; NULL: memory is out. Others
 * that it replaces are removed. */
static KilnAxisDraft *draft_of(Splitter *splitter, const char *key, const KilnSweepValue *sweep)
{
    KilnAxisDraft *draft = NULL;

    for (size_t i = 0; i < splitter->count;) {
        if (strcmp(splitter->drafts[i]->axis.key, key) != 0 ||
            kiln_conditions_exclude(splitter->drafts[i]->sweep, sweep))
            i++;
        else if (draft == NULL)
            draft = splitter->drafts[i++];
        else
            remove_draft(splitter, i);
    }
    if (draft != NULL)
        return draft;
    draft = kiln_arena_alloc(splitter->arena, sizeof(*draft));
    if (draft == NULL || !KILN_ARENA_RESERVE(splitter->arena, splitter->drafts, splitter->capacity,
                                             splitter->count + 1))
        return NULL;
    return splitter->drafts[splitter->count++] = draft;
}

static bool has_tag(const KilnSweepValue *sweep, const char *tag)
{
    for (const char *const *has = sweep->tags; has != NULL && *has != NULL; has++)
        if (strcmp(*has, tag) == 0)
            return true;
    return false;
}

/* Values at steps from the start; the last one that fits is the end. */
static void set_step(Splitter *splitter, KilnAxis *axis, const KilnOverride *override)
{
    const double step = override->sweep->step.value;
    const double steps = floor((axis->high - axis->low) / step + 1e-9);

    if (!(steps >= 1.0) || (axis->kind == KILN_AXIS_INT && step < 1.0)) {
        fail(splitter, kiln_errors_report(splitter->errors, &override->origin, KILN_E_RANGE,
                                          "%s: a step of %g leaves one value between %g and %g",
                                          override->key, step, axis->low, axis->high));
        return;
    }
    axis->step = step;
    axis->high = kiln_decimal_round(axis->low + steps * step);
}

static void fill_interval(Splitter *splitter, KilnAxis *axis, const KilnOverride *override)
{
    const KilnSweepValue *sweep = override->sweep;

    axis->kind = sweep->start.real ? KILN_AXIS_FLOAT : KILN_AXIS_INT;
    axis->low = sweep->start.value;
    axis->high = sweep->stop.value;
    axis->log = has_tag(sweep, "log");
    if (sweep->stepped)
        set_step(splitter, axis, override);
    if (axis->log && axis->low <= 0)
        fail(splitter,
             kiln_errors_report(splitter->errors, &override->origin, KILN_E_RANGE,
                                "%s: an interval on a logarithmic scale must start above 0, not "
                                "at %g",
                                override->key, axis->low));
}

/* The bounds of a range(), which are its first and last value. */
static void fill_range(KilnAxis *axis, const KilnConfigNode *values)
{
    KilnNumber first = { 0 }, last = { 0 };

    axis->kind = KILN_AXIS_RANGE;
    (void)kiln_number_of(values->entries[0].value, &first);
    (void)kiln_number_of(values->entries[values->count - 1].value, &last);
    axis->low = first.value;
    axis->high = last.value;
}

static void fill_overrides(Splitter *splitter, KilnAxis *axis, const KilnOverride *override)
{
    const KilnSweepValue *sweep = override->sweep;
    const KilnConfigNode *values = sweep != NULL ? values_of(splitter, override) : NULL;
    size_t n = values != NULL ? values->count : sweep != NULL ? 0 : 1;
    const char **overrides = kiln_arena_alloc(splitter->arena, (n + 1) * sizeof(*overrides));

    for (size_t i = 0; i < n && overrides != NULL; i++) {
        const KilnConfigNode *value = values != NULL ? values->entries[i].value : override->value;

        overrides[i] = value != NULL ? write_override(splitter, axis->key, value) : axis->key;
    }
    splitter->values += n;
    axis->overrides = overrides;
    axis->count = n;
    axis->weights = sweep != NULL ? sweep->weights : NULL;
    if (values != NULL && n > 0 && sweep->kind == KILN_SWEEP_RANGE && !sweep->shuffle)
        fill_range(axis, values);
}

/* `number`: of the argument; 0: it is no argument. */
static void add_override(Splitter *splitter, const KilnOverride *override, size_t number)
{
    const KilnSweepValue *sweep = override->sweep;

    if (splitter->values > KILN_SWEEP_VALUES)
        return; /* reported already */
    const char *key = kiln_override_target(splitter->arena, override);
    KilnAxisDraft *draft = key != NULL ? draft_of(splitter, key, sweep) : NULL;

    if (draft == NULL)
        return;
    *draft = (KilnAxisDraft) { .sweep = sweep, .origin = override->origin, .number = number };
    draft->axis = (KilnAxis) { .key = key,
                               .kind = KILN_AXIS_CHOICE,
                               .tags = sweep != NULL ? sweep->tags : NULL };
    if (sweep != NULL && sweep->kind == KILN_SWEEP_INTERVAL)
        fill_interval(splitter, &draft->axis, override);
    else
        fill_overrides(splitter, &draft->axis, override);
    if (splitter->values > KILN_SWEEP_VALUES)
        fail(splitter, kiln_errors_report(splitter->errors, &override->origin, KILN_E_RANGE,
                                          "the sweep's arguments have more than %d values",
                                          KILN_SWEEP_VALUES));
}

/* ---- Sources --------------------------------------------------------------- */

/* `lr: 0.1,0.01` of kiln.sweeper.params is parsed like an argument. */
static void add_param(Splitter *splitter, const KilnEntry *entry)
{
    const KilnConfigNode *value = NULL;
    KilnOverride override = { 0 };
    KilnText text = { 0 };
    KilnError err = { 0 };
    KilnStatus status = kiln_config_resolve(splitter->config, entry->value, &value, &err);

    if (status >= 0 && (value == NULL || value->kind != KILN_NODE_SCALAR))
        status = kiln_error_set(&err, KILN_E_TYPE,
                                "kiln.sweeper.params.%s: expected text such as \"0.1,0.01\", got "
                                "%s; quote the whole value",
                                entry->key, value != NULL ? kiln_node_kind_name(value) : "nothing");
    if (status < 0) {
        kiln_error_at(&err, &entry->value->origin);
        add_error(splitter, &err);
        return;
    }
    kiln_text_printf(&text, "%s=", entry->key);
    if (value->scalar == KILN_SCALAR_NULL)
        kiln_text_append(&text, "null");
    else
        kiln_value_text(value, &text);
    const char *argument = kiln_text_to_arena(&text, splitter->arena);
    if (argument == NULL)
        return;
    status = kiln_override_read_from(splitter->arena, argument, &entry->value->origin, &override,
                                     &err);
    if (status < 0 || override.problem != NULL)
        add_error(splitter, status < 0 ? &err : override.problem);
    else if (kiln_override_is_own(&override))
        fail(splitter, kiln_errors_report(splitter->errors, &entry->value->origin, KILN_E_USAGE,
                                          "kiln.sweeper.params.%s: options of kiln are the same "
                                          "for all jobs; set them outside of params",
                                          entry->key));
    else
        add_override(splitter, &override, 0);
}

static void add_params(Splitter *splitter)
{
    const KilnConfigNode *params = kiln_node_find(splitter->config->root, "kiln.sweeper.params");

    if (params == NULL || kiln_node_is_scalar(params, KILN_SCALAR_NULL))
        return;
    if (params->kind != KILN_NODE_MAP) {
        fail(splitter,
             kiln_errors_report(splitter->errors, &params->origin, KILN_E_TYPE,
                                "kiln.sweeper.params: expected a mapping from keys to values, "
                                "got %s",
                                kiln_node_kind_name(params)));
        return;
    }
    for (size_t i = 0; i < params->count; i++)
        add_param(splitter, &params->entries[i]);
}

/* Length of an item: up to a comma that is not inside ${...}. */
static size_t item_length(const char *p)
{
    size_t n = 0;
    int depth = 0;

    for (; p[n] != '\0' && (p[n] != ',' || depth > 0); n++) {
        if (p[n] == '{')
            depth++;
        else if (p[n] == '}' && depth > 0)
            depth--;
    }
    return n;
}

/* A value that cannot be parsed may be texts with commas: root=/data/a=b,/data/c=d. */
static void read_texts(Splitter *splitter, size_t number, KilnOverride *override)
{
    KilnMaker maker = { .arena = splitter->arena, .origin = override->origin };
    KilnValueParser parser = { .maker = maker };
    const char *target = kiln_override_target(splitter->arena, override), *p = override->value_text;
    KilnSweepValue *sweep = kiln_sweep_value_new(&parser, KILN_SWEEP_CHOICE, NULL);

    while (!splitter->arena->failed) {
        size_t n = item_length(p);
        KilnOverride item = { 0 };
        const char *text = kiln_arena_printf(splitter->arena, "%s=%.*s", target, (int)n, p);

        if (n == 0 || text == NULL ||
            kiln_override_read(splitter->arena, text, number, &item, NULL) < 0)
            return;
        kiln_override_accept_text(splitter->arena, splitter->config, splitter->hooks, &item);
        if (item.problem != NULL || item.sweep != NULL)
            return;
        kiln_node_append(splitter->arena, sweep->items, NULL, maker.origin, item.value);
        p += n;
        if (*p++ == '\0') {
            override->problem = NULL;
            override->sweep = sweep;
            return;
        }
    }
}

static void add_argument(Splitter *splitter, const char *text, size_t number)
{
    KilnOverride override = { 0 };
    KilnError err = { 0 };
    KilnStatus status = kiln_override_read(splitter->arena, text, number, &override, &err);

    if (status >= 0 && kiln_override_is_own(&override)) {
        splitter->own_numbers[splitter->n_own] = number;
        splitter->own[splitter->n_own++] = override.text; /* composing has parsed its value */
        return;
    }
    if (status >= 0 && override.problem != NULL)
        read_texts(splitter, number, &override);
    if (status < 0 || override.problem != NULL)
        add_error(splitter, status < 0 ? &err : override.problem);
    else
        add_override(splitter, &override, number);
}

/* ---- Axes that depend on others ------------------------------------------------------------- */

/* Axes of zip(), which must have the same length, have the first of them as leader. */
static void set_leaders(Splitter *splitter)
{
    const KilnAxis *first = NULL;
    size_t leader = 0;

    for (size_t i = 0; i < splitter->count; i++) {
        KilnAxis *axis = &splitter->drafts[i]->axis;

        axis->leader = i;
        if (splitter->drafts[i]->sweep == NULL || !splitter->drafts[i]->sweep->zip)
            continue;
        if (first == NULL) {
            first = axis;
            leader = i;
        }
        axis->leader = leader;
        if (axis->count == first->count)
            continue;
        fail(splitter,
             kiln_errors_report(splitter->errors, NULL, KILN_E_USAGE,
                                "zip() takes one value of each at a time, but %s has %zu and %s "
                                "has %zu",
                                first->key, first->count, axis->key, axis->count));
    }
}

/* Order the axes and connect them. NULL: memory is out. */
static const KilnAxis *const *connect_axes(Splitter *splitter)
{
    const KilnAxis **axes = kiln_arena_alloc(splitter->arena,
                                             (splitter->count + 1) * sizeof(KilnAxis *));

    fail(splitter, kiln_conditions_resolve(splitter->drafts, splitter->count, splitter->arena,
                                           splitter->errors));
    if (splitter->status >= 0)
        set_leaders(splitter);
    for (size_t i = 0; i < splitter->count && axes != NULL; i++) {
        KilnAxis *axis = &splitter->drafts[i]->axis;

        axis->parent = axis->active_for != NULL ? splitter->drafts[axis->parent]->axis.leader : 0;
        axes[i] = axis;
    }
    return axes;
}

/* By axis; NULL: memory is out. */
static const KilnAxisSource *sources_of(Splitter *splitter)
{
    KilnAxisSource *sources = kiln_arena_alloc(splitter->arena,
                                               (splitter->count + 1) * sizeof(*sources));

    for (size_t i = 0; i < splitter->count && sources != NULL; i++)
        sources[i] = (KilnAxisSource) { .number = splitter->drafts[i]->number,
                                        .origin = splitter->drafts[i]->origin };
    return sources;
}

KilnStatus kiln_sweep_arguments(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                                const KilnConfig *config, KilnArena *arena, KilnSweepArguments *ret,
                                KilnErrors *errors)
{
    Splitter splitter = {
        .arena = arena, .hooks = hooks, .search = config->search, .config = config, .errors = errors
    };
    size_t n = 0;

    while (request->overrides != NULL && request->overrides[n] != NULL)
        n++;
    splitter.search.hooks = hooks;
    splitter.search.arena = arena;
    splitter.own = kiln_arena_alloc(arena, (n + 1) * sizeof(*splitter.own));
    splitter.own_numbers = kiln_arena_alloc(arena, (n + 1) * sizeof(*splitter.own_numbers));
    if (!arena->failed)
        add_params(&splitter);
    for (size_t i = 0; i < n && !arena->failed; i++)
        add_argument(&splitter, request->overrides[i], i + 1);
    const KilnAxis *const *axes = !arena->failed && splitter.status >= 0 ? connect_axes(&splitter)
                                                                         : NULL;
    const KilnAxisSource *sources = axes != NULL ? sources_of(&splitter) : NULL;
    if (arena->failed) {
        KilnError err = { 0 };

        kiln_error_nomem(&err, sizeof(KilnAxis));
        add_error(&splitter, &err);
    }
    if (splitter.status < 0)
        return splitter.status;
    *ret = (KilnSweepArguments) { .space = { .axes = axes, .count = splitter.count },
                                  .sources = sources,
                                  .own = splitter.own,
                                  .own_numbers = splitter.own_numbers };
    return KILN_OK;
}
