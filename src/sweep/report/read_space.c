/* Reads the space of a sweep back from a record of its journal. */
#include <string.h>

#include "base/json.h"
#include "sweep/report/sweep_report.h"

static KilnStatus damaged(const char *what, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "the space of the sweep is damaged: %s", what);
}

/* The kind of a list of values is not recorded: a range is a list of numbers. */
static KilnStatus read_values(const json_t *json, KilnArena *arena, KilnAxis *axis, KilnError *err)
{
    const json_t *leader = json_object_get(json, "leader");

    axis->kind = KILN_AXIS_CHOICE;
    axis->overrides = kiln_texts_read(arena, json_object_get(json, "overrides"));
    if (axis->overrides == NULL)
        return kiln_error_nomem(err, 1);
    while (axis->overrides[axis->count] != NULL)
        axis->count++;
    if (json_is_integer(leader) && json_integer_value(leader) >= 0)
        axis->leader = (size_t)json_integer_value(leader);
    return KILN_OK;
}

static KilnStatus read_condition(const json_t *json, KilnArena *arena, KilnAxis *axis,
                                 KilnError *err)
{
    const json_t *list = json_object_get(json, "active_for");
    const json_t *parent = json_object_get(json, "parent");
    const size_t n = json_array_size(list);

    if (list == NULL)
        return KILN_OK;
    if (!json_is_integer(parent) || json_integer_value(parent) < 0)
        return damaged("a condition has no parent", err);
    bool *active = kiln_arena_alloc(arena, (n + 1) * sizeof(*active));
    if (active == NULL)
        return kiln_error_nomem(err, n);
    for (size_t i = 0; i < n; i++)
        active[i] = json_is_true(json_array_get(list, i));
    axis->parent = (size_t)json_integer_value(parent);
    axis->active_for = active;
    return KILN_OK;
}

static KilnStatus read_axis(const json_t *json, size_t index, KilnArena *arena, KilnAxis *ret,
                            KilnError *err)
{
    const char *key = json_string_value(json_object_get(json, "key"));
    const json_t *low = json_object_get(json, "low");
    KilnStatus status = KILN_OK;

    if (key == NULL)
        return damaged("an axis has no key", err);
    ret->key = kiln_arena_strdup(arena, key);
    ret->leader = index;
    if (ret->key == NULL)
        return kiln_error_nomem(err, strlen(key));
    if (json_is_number(low)) {
        ret->kind = json_is_true(json_object_get(json, "int")) ? KILN_AXIS_INT : KILN_AXIS_FLOAT;
        ret->low = json_number_value(low);
        ret->high = json_number_value(json_object_get(json, "high"));
        ret->step = json_number_value(json_object_get(json, "step"));
        ret->log = json_is_true(json_object_get(json, "log"));
    } else {
        status = read_values(json, arena, ret, err);
    }
    return status >= 0 ? read_condition(json, arena, ret, err) : status;
}

/* Parents come first; leaders and conditions must fit. */
static KilnStatus check(const KilnSpace *space, const json_t *axes, KilnError *err)
{
    for (size_t i = 0; i < space->count; i++) {
        const KilnAxis *axis = space->axes[i];
        const size_t n = json_array_size(json_object_get(json_array_get(axes, i), "active_for"));

        if (axis->leader > i)
            return damaged("an axis varies with a later one", err);
        if (axis->active_for != NULL &&
            (axis->parent >= i || n != space->axes[axis->parent]->count))
            return damaged("a condition does not fit its parent", err);
    }
    return KILN_OK;
}

KilnStatus kiln_space_read(const json_t *axes, KilnArena *arena, KilnSpace *ret, KilnError *err)
{
    const size_t n = json_array_size(axes);
    const KilnAxis **list = kiln_arena_alloc(arena, (n + 1) * sizeof(*list));
    KilnAxis *all = kiln_arena_alloc(arena, (n + 1) * sizeof(*all));
    KilnSpace space = { .axes = list, .count = n };
    KilnStatus status = list != NULL && all != NULL ? KILN_OK : kiln_error_nomem(err, n);

    if (status >= 0 && !json_is_array(axes))
        status = damaged("it is not a list", err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        status = read_axis(json_array_get(axes, i), i, arena, &all[i], err);
        list[i] = &all[i];
    }
    if (status >= 0)
        status = check(&space, axes, err);
    if (status >= 0)
        *ret = space;
    return status;
}
