/* The config of one job: its overrides, and keys that the sweep sets. */
#include <string.h>

#include "config/override/override.h"
#include "registry/option_defaults.h"
#include "registry/registry.h"
#include "sweep/sweep_state.h"

/* Append the overrides that the sweep sets for each job, after all others. */
static bool add_own_keys(const KilnSweep *sweep, KilnArena *arena, size_t number, const char **list)
{
    KilnText text = { 0 };
    size_t n = 0;

    list[n++] = kiln_arena_printf(arena, "kiln.job.num=%zu", number);
    list[n++] = kiln_arena_printf(arena, "kiln.job.id='%zu'", number);
    if (sweep->dir != NULL) {
        kiln_override_quote(&text, "kiln.sweep.dir", sweep->dir);
        list[n++] = text.failed ? NULL : kiln_arena_strdup(arena, text.data);
        kiln_text_release(&text);
    }
    list[n++] = "kiln.run.dir='${kiln.sweep.dir}/${kiln.sweep.subdir}'";
    list[n++] = "kiln.runtime.output_dir='${kiln.run.dir}'";
    for (size_t i = 0; i < n; i++)
        if (list[i] == NULL)
            return false;
    return true;
}

/* The index of the axis of an override; SIZE_MAX: it is of none. */
static size_t axis_of(const KilnSpace *space, const char *override)
{
    for (size_t i = 0; i < space->count; i++) {
        const size_t length = strlen(space->axes[i]->key);

        if (strncmp(override, space->axes[i]->key, length) == 0 &&
            (override[length] == '=' || override[length] == '\0'))
            return i;
    }
    return SIZE_MAX;
}

/* Where the overrides of a job are written, and after them those of the sweep itself. */
static void set_origins(const KilnSweepArguments *arguments, const KilnAxisSource *sources,
                        const char *const *overrides, size_t n, KilnArena *arena, KilnOrigin *ret)
{
    for (size_t i = 0; i < n; i++) {
        const size_t axis = axis_of(&arguments->space, overrides[i]);

        if (axis == SIZE_MAX)
            continue;
        ret[i] = sources[axis].number > 0
                     ? kiln_override_origin(arena, overrides[i], sources[axis].number)
                     : sources[axis].origin;
    }
    for (size_t i = 0; arguments->own[i] != NULL; i++)
        ret[n + i] = kiln_override_origin(arena, arguments->own[i], arguments->own_numbers[i]);
}

KilnStatus kiln_sweep_compose_job(const KilnSweep *sweep, const char *const *overrides, size_t n,
                                  size_t number, bool whole, const KilnAxisSource *sources,
                                  KilnConfig **ret, KilnErrors *errors)
{
    enum { MAX_OWN_KEYS = 6 };
    KilnComposeRequest request = sweep->compose;
    const char *const *own = sweep->arguments.own;
    KilnConfig *config = NULL;
    KilnArena arena = { 0 };
    KilnStatus status = KILN_E_NOMEM;
    size_t n_own = 0;

    while (own[n_own] != NULL)
        n_own++;
    const char **list = kiln_arena_alloc(&arena, (n + n_own + MAX_OWN_KEYS) * sizeof(*list));
    KilnOrigin *origins = kiln_arena_alloc(&arena, (n + n_own + MAX_OWN_KEYS) * sizeof(*origins));
    if (list != NULL && origins != NULL) {
        for (size_t i = 0; i < n + n_own; i++)
            list[i] = i < n ? overrides[i] : own[i - n];
        request.overrides = list;
        if (sources != NULL)
            set_origins(&sweep->arguments, sources, overrides, n, &arena, origins);
        if (add_own_keys(sweep, &arena, number, list + n + n_own))
            status = kiln_compose_from(&request, origins, &config, errors);
    }
    if (status >= 0 && (whole || kiln_option_defaults_is_about(config)))
        status = kiln_config_check(config, request.registry, errors);
    kiln_arena_release(&arena);
    if (status < 0)
        kiln_config_free(config);
    else
        *ret = config;
    return status;
}
