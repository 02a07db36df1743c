/* Composition with components: kiln_compose gives the composer (config/compose.c), which knows no
 * components, hooks into the registry. */
#include "config/compose.h"

#include <string.h>

#include "base/text.h"
#include "config/provenance/error_list.h"
#include "registry/option_defaults.h"
#include "registry/registry.h"
#include "registry/rename.h"

typedef struct Context {
    KilnOptionDefaults defaults_layer;
    KilnErrors *errors; /* warnings */
} Context;

static KilnStatus defaults_layer(void *ctx, KilnConfig *config, KilnErrors *errors)
{
    Context *context = ctx;

    return kiln_option_defaults_apply(&context->defaults_layer, config, errors);
}

/* The kind whose components are options of a group. Callbacks and loggers are mappings of several
 * components, so none of them is an option. */
static KilnKind group_kind(const char *group)
{
    KilnKind kind = kiln_kind_find(group, strlen(group));

    if (strcmp(group, "kiln/launcher") == 0)
        return KILN_KIND_LAUNCHER;
    if (strcmp(group, "kiln/sweeper") == 0)
        return KILN_KIND_SWEEPER;
    if (strcmp(group, "kiln/pruner") == 0)
        return KILN_KIND_PRUNER;
    if (strcmp(group, "task") == 0)
        return KILN_KIND_MODULE;
    return kind == KILN_KIND_CALLBACK || kind == KILN_KIND_LOGGER ? KILN_KIND_ANY : kind;
}

static bool option(void *ctx, KilnConfig *config, const char *group, const char *name,
                   const char **ret_yaml, const char **ret_source)
{
    const Context *context = ctx;
    KilnArena *arena = kiln_config_arena(config);
    KilnKind kind = group_kind(group);

    if (context->defaults_layer.registry == NULL || kind == KILN_KIND_ANY ||
        (!kiln_starts_with(name, KILN_PYTHON_PREFIX) &&
         kiln_registry_find(context->defaults_layer.registry, kind, name) == NULL))
        return false;
    const char *yaml = kiln_arena_printf(arena, "_target_: %s/%s\n", kiln_kind_name(kind), name);
    const char *source = kiln_arena_printf(arena, "component %s/%s", kiln_kind_name(kind), name);
    if (yaml == NULL || source == NULL)
        return false;
    *ret_yaml = yaml;
    *ret_source = source;
    return true;
}

static bool is_member(void *ctx, const char *group, const char *name)
{
    const Context *context = ctx;
    KilnKind kind = strcmp(group, "callbacks") == 0 ? KILN_KIND_CALLBACK : KILN_KIND_LOGGER;

    return context->defaults_layer.registry != NULL &&
           (kind == KILN_KIND_CALLBACK || strcmp(group, "logger") == 0) &&
           kiln_registry_find(context->defaults_layer.registry, kind, name) != NULL;
}

static const char *options(void *ctx, const char *group, size_t i)
{
    const KilnRegistry *registry = ((const Context *)ctx)->defaults_layer.registry;
    KilnKind kind = group_kind(group);

    for (size_t j = 0; registry != NULL && kind != KILN_KIND_ANY && j < registry->count; j++)
        if (registry->items[j]->kind == kind && i-- == 0)
            return registry->items[j]->name;
    return NULL;
}

/* Items of a list of texts are text, the list is not. */
static bool is_text(void *ctx, const KilnConfig *config, const char *key)
{
    const KilnField *field =
        kiln_config_field(config, ((const Context *)ctx)->defaults_layer.registry, key);
    const char *last = strrchr(key, '.');

    if (field == NULL || (field->type != KILN_TYPE_STR && field->type != KILN_TYPE_PATH))
        return false;
    return field->shape == KILN_ONE || strcmp(last != NULL ? last + 1 : key, field->name) != 0;
}

/* "sgd" and "optimizer/sgd" name optimizer/sgd. */
static bool is_named(const KilnComponent *component, const char *target)
{
    const char *slash = strchr(target, '/');

    return strcmp(slash != NULL ? slash + 1 : target, component->name) == 0 &&
           (slash == NULL || kiln_kind_find(target, (size_t)(slash - target)) == component->kind);
}

static bool other_component(void *ctx, const char *from, const char *to)
{
    const KilnRegistry *registry = ((const Context *)ctx)->defaults_layer.registry;
    /* A class of Python may be described only later. */
    bool from_known = strstr(from, KILN_PYTHON_PREFIX) != NULL;
    bool to_known = strstr(to, KILN_PYTHON_PREFIX) != NULL;

    if (from_known && to_known)
        return strcmp(strstr(from, KILN_PYTHON_PREFIX), strstr(to, KILN_PYTHON_PREFIX)) != 0;
    for (size_t i = 0; registry != NULL && i < registry->count; i++) {
        const bool is_from = is_named(registry->items[i], from);
        const bool is_to = is_named(registry->items[i], to);

        if (is_from && is_to)
            return false;
        from_known = from_known || is_from;
        to_known = to_known || is_to;
    }
    return from_known && to_known;
}

static const char *renamed(void *ctx, const KilnConfig *config, const KilnConfigNode *map,
                           const char *key, const KilnOrigin *origin)
{
    const Context *context = ctx;
    const KilnField *row = kiln_option_defaults_renamed(&context->defaults_layer, map, key);

    if (row == NULL || strchr(row->renamed, '.') != NULL)
        return NULL; /* overrides name an option of a part by its new name */
    kiln_rename_warn(config, map, row, origin, context->errors);
    return row->renamed;
}

static void check(void *ctx, KilnConfig *config, KilnErrors *errors)
{
    Context *context = ctx;

    if (context->defaults_layer.registry != NULL &&
        kiln_option_defaults_apply(&context->defaults_layer, config, errors) == KILN_OK)
        (void)!kiln_config_check(config, context->defaults_layer.registry, errors);
}

static KilnComposeHooks hooks_of(Context *context)
{
    const KilnRegistry *registry = context->defaults_layer.registry;

    return (KilnComposeHooks) { .ctx = context,
                                .folders = registry != NULL ? registry->folders : NULL,
                                .defaults_layer = defaults_layer,
                                .option = option,
                                .options = options,
                                .is_member = is_member,
                                .other_component = other_component,
                                .is_text = is_text,
                                .rename = renamed,
                                .check = check };
}

typedef KilnStatus (*Compose)(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                              KilnConfig **ret, KilnErrors *errors);

static KilnStatus compose(const KilnComposeRequest *request, const KilnOrigin *origins, Compose way,
                          KilnConfig **ret, KilnErrors *errors)
{
    Context context = { .defaults_layer.registry = request->registry };
    KilnComposeHooks hooks = hooks_of(&context);
    KilnConfig *config = NULL;
    KilnErrors *found = NULL;
    KilnStatus status = kiln_errors_new(&found);

    if (status < 0)
        return status;
    context.errors = found;
    hooks.origins = origins;
    status = way(request, &hooks, &config, found);
    /* Again for values that overrides changed indirectly: a _target_ of ${name}. */
    if (status == KILN_OK)
        status = kiln_option_defaults_apply(&context.defaults_layer, config, found);
    if (status == KILN_OK)
        *ret = config;
    else
        kiln_config_free(config);
    /* When composing fails, an unknown _target_ is often the cause: its options do not exist. */
    if (status < 0)
        kiln_errors_append(errors, context.defaults_layer.unknown);
    kiln_errors_append(errors, found);
    kiln_errors_sort(errors, NULL);
    kiln_errors_free(found);
    kiln_option_defaults_release(&context.defaults_layer);
    return status;
}

KilnStatus kiln_compose(const KilnComposeRequest *request, KilnConfig **ret, KilnErrors *errors)
{
    return compose(request, NULL, kiln_config_compose, ret, errors);
}

KilnStatus kiln_compose_from(const KilnComposeRequest *request, const KilnOrigin *origins,
                             KilnConfig **ret, KilnErrors *errors)
{
    return compose(request, origins, kiln_config_compose, ret, errors);
}

KilnStatus kiln_compose_sweep(const KilnComposeRequest *request, KilnConfig **ret,
                              KilnSweepArguments *ret_arguments, KilnErrors *errors)
{
    Context context = { .defaults_layer.registry = request->registry };
    KilnComposeHooks hooks = hooks_of(&context);
    KilnConfig *config = NULL;
    KilnStatus status = compose(request, NULL, kiln_config_compose_sweep, &config, errors);

    if (status >= 0)
        status = kiln_sweep_arguments(request, &hooks, config, kiln_config_arena(config),
                                      ret_arguments, errors);
    if (status >= 0)
        *ret = config;
    else
        kiln_config_free(config);
    return status;
}

KilnStatus kiln_compose_options(const KilnComposeRequest *request, const char *group, bool groups,
                                char ***ret, size_t *ret_count, KilnError *err)
{
    Context context = { .defaults_layer.registry = request->registry };
    KilnComposeHooks hooks = hooks_of(&context);

    return kiln_group_options(request, &hooks, group, groups, ret, ret_count, err);
}

KilnStatus kiln_compose_files(const KilnComposeRequest *request, KilnGroupFileVisit *visit,
                              void *ctx, KilnError *err)
{
    Context context = { .defaults_layer.registry = request->registry };
    KilnComposeHooks hooks = hooks_of(&context);

    return kiln_group_files(request, &hooks, visit, ctx, err);
}
