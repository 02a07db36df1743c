/* Resolves the conditions of axes: finds the axis that each names, and its values. */
#include "config/sweep/conditions.h"

#include <string.h>

#include "base/text.h"
#include "config/override/value.h"

enum { LISTED_VALUES = 10 }; /* in messages */

/* ---- Keys and values -------------------------------------------------------------------- */

static const char *without_plus(const char *key)
{
    return key + strspn(key, "+");
}

/* "resnet" of "model=resnet". */
static const char *value_of(const KilnAxis *axis, size_t i)
{
    const char *equals = strchr(axis->overrides[i], '=');

    return equals != NULL ? equals + 1 : "";
}

static bool is_value(const KilnConfigNode *node, const char *value)
{
    KilnText text = { 0 };

    kiln_value_written(node, &text);
    const bool same = text.data != NULL && strcmp(text.data, value) == 0;
    kiln_text_release(&text);
    return same;
}

static bool lists(const KilnConfigNode *values, const KilnConfigNode *value)
{
    KilnText text = { 0 };
    bool found = false;

    kiln_value_written(value, &text);
    for (size_t i = 0; i < values->count && text.data != NULL && !found; i++)
        found = is_value(values->entries[i].value, text.data);
    kiln_text_release(&text);
    return found;
}

bool kiln_conditions_exclude(const KilnSweepValue *a, const KilnSweepValue *b)
{
    if (a == NULL || b == NULL || a->when_key == NULL || b->when_key == NULL ||
        strcmp(a->when_key, b->when_key) != 0)
        return false;
    for (size_t i = 0; i < a->when_values->count; i++)
        if (lists(b->when_values, a->when_values->entries[i].value))
            return false;
    return true;
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* "model.depth: when(model,...): ..." */
static KilnStatus refuse(const KilnAxisDraft *draft, KilnErrors *errors, const char *what)
{
    return kiln_errors_report(errors, &draft->origin, KILN_E_USAGE, "%s: when(%s,...): %s",
                              draft->axis.key, draft->sweep->when_key, what);
}

static KilnStatus refuse_key(const KilnAxisDraft *draft, KilnErrors *errors)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "no argument sets %s; add %s=VALUE,VALUE", draft->sweep->when_key,
                     draft->sweep->when_key);
    const KilnStatus status = refuse(draft, errors, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return status;
}

/* "model has no value resent (did you mean resnet?); it has mlp, resnet" */
static KilnStatus refuse_value(const KilnAxisDraft *draft, const KilnAxis *parent,
                               const KilnConfigNode *value, KilnErrors *errors)
{
    const char *names[LISTED_VALUES], *near;
    const size_t n = parent->count < LISTED_VALUES ? parent->count : LISTED_VALUES;
    KilnText text = { 0 }, wrong = { 0 };

    for (size_t i = 0; i < n; i++)
        names[i] = value_of(parent, i);
    kiln_value_written(value, &wrong);
    near = wrong.data != NULL ? kiln_nearest(wrong.data, names, n) : NULL;
    kiln_text_printf(&text, "%s has no value %s", draft->sweep->when_key,
                     wrong.data != NULL ? wrong.data : "like this");
    if (near != NULL)
        kiln_text_printf(&text, " (did you mean %s?)", near);
    for (size_t i = 0; i < n; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "; it has ", names[i]);
    if (n < parent->count)
        kiln_text_append(&text, ", ...");
    const KilnStatus status = refuse(draft, errors, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    kiln_text_release(&wrong);
    return status;
}

/* ---- Resolving --------------------------------------------------------------------------------
 */

/* Mark the values of the parent for which the axis is active. */
static KilnStatus set_active_for(KilnAxisDraft *draft, const KilnAxis *parent, KilnArena *arena,
                                 KilnErrors *errors)
{
    const KilnConfigNode *values = draft->sweep->when_values;
    bool *active_for = kiln_arena_alloc(arena, (parent->count + 1) * sizeof(*active_for));

    if (active_for == NULL)
        return KILN_OK; /* the arena has failed */
    for (size_t i = 0; i < values->count; i++) {
        bool found = false;

        for (size_t v = 0; v < parent->count; v++)
            if (is_value(values->entries[i].value, value_of(parent, v)))
                found = active_for[v] = true;
        if (!found)
            return refuse_value(draft, parent, values->entries[i].value, errors);
    }
    draft->axis.active_for = active_for;
    return KILN_OK;
}

static KilnStatus resolve(KilnAxisDraft **drafts, size_t count, KilnAxisDraft *draft,
                          KilnArena *arena, KilnErrors *errors)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(without_plus(drafts[i]->axis.key), draft->sweep->when_key) != 0)
            continue;
        draft->parent = drafts[i];
        found++;
    }
    if (found == 0)
        return refuse_key(draft, errors);
    if (found > 1)
        return refuse(draft, errors,
                      "that key has several conditions itself; use the one on which "
                      "it depends");
    const KilnAxis *parent = &draft->parent->axis;
    if ((parent->kind & (KILN_AXIS_FLOAT | KILN_AXIS_INT)) != 0)
        return refuse(draft, errors,
                      "an interval has no single values; write range() or the values");
    return set_active_for(draft, parent, arena, errors);
}

/* ---- Order ------------------------------------------------------------------------------------
 */

/* The first of the axes from `n` on whose parent is before `n`; `count`: none. */
static size_t next_of(KilnAxisDraft **drafts, size_t n, size_t count)
{
    size_t i = n;

    while (i < count && drafts[i]->parent != NULL && !drafts[i]->parent->placed)
        i++;
    return i;
}

/* Parents first, otherwise in the same order. */
static KilnStatus sort(KilnAxisDraft **drafts, size_t count, KilnErrors *errors)
{
    for (size_t n = 0; n < count; n++) {
        const size_t next = next_of(drafts, n, count);

        if (next == count)
            return refuse(drafts[n], errors, "this condition depends on itself");
        KilnAxisDraft *draft = drafts[next];
        memmove(&drafts[n + 1], &drafts[n], (next - n) * sizeof(KilnAxisDraft *));
        drafts[n] = draft;
        draft->placed = true;
    }
    return KILN_OK;
}

static void set_parents(KilnAxisDraft **drafts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < i && drafts[i]->parent != NULL; p++)
            if (drafts[p] == drafts[i]->parent)
                drafts[i]->axis.parent = p;
}

KilnStatus kiln_conditions_resolve(KilnAxisDraft **drafts, size_t count, KilnArena *arena,
                                   KilnErrors *errors)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < count; i++) {
        const KilnStatus one = drafts[i]->sweep != NULL && drafts[i]->sweep->when_key != NULL
                                   ? resolve(drafts, count, drafts[i], arena, errors)
                                   : KILN_OK;

        status = status >= 0 ? one : status;
    }
    if (status >= 0)
        status = sort(drafts, count, errors);
    if (status >= 0)
        set_parents(drafts, count);
    return status;
}
