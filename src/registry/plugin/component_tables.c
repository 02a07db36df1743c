/* Sizes of the tables of components, now and when the ABI began (kiln/plugin.h), and copies that
 * fill up older ones. */
#include "registry/plugin/component_tables.h"

#include <string.h>

#include "kiln_embed.h"
#include "schema/table.h"

/* ---- Sizes ------------------------------------------------------------------------ */

/* Of KILN_ABI 7, when it began; a kind that came later has the size that its table then had. Tables
 * only grow: a larger sizeof needs no change here. */
#define KILN_TABLES(X)                                                                             \
    X(DATAMODULE, KilnDataModuleOps, 128)                                                          \
    X(MODULE, KilnModuleOps, 96)                                                                   \
    X(MODEL, KilnModelOps, 40)                                                                     \
    X(LOSS, KilnLossOps, 16)                                                                       \
    X(OPTIMIZER, KilnOptimizerOps, 40)                                                             \
    X(SCHEDULER, KilnSchedulerOps, 56)                                                             \
    X(CALLBACK, KilnCallbackOps, 376)                                                              \
    X(LOGGER, KilnLoggerOps, 72)                                                                   \
    X(METRIC, KilnMetricOps, 64)                                                                   \
    X(TRANSFORM, KilnTransformOps, 16)                                                             \
    X(SAMPLER, KilnSamplerOps, 40)                                                                 \
    X(BATCH_TRANSFORM, KilnBatchTransformOps, 24)                                                  \
    X(SWEEPER, KilnSweeperOps, 32)                                                                 \
    X(LAUNCHER, KilnLauncherOps, 16)                                                               \
    X(STRATEGY, KilnStrategyOps, 40)                                                               \
    X(TOKENIZER, KilnTokenizerOps, 72)                                                             \
    X(PRUNER, KilnPrunerOps, 16)
enum { FIRST_COMPONENT = 88, FIRST_FIELD = 152, FIRST_INFO = 64 };

_Static_assert(KILN_ABI == 7, "a new ABI: write the sizes that its tables begin with");
#define KILN_GROWS(kind, T, first)                                                                 \
    _Static_assert(sizeof(T) >= (first), #T " lost members: raise KILN_ABI");
KILN_TABLES(KILN_GROWS)
_Static_assert(sizeof(KilnComponent) >= FIRST_COMPONENT && sizeof(KilnField) >= FIRST_FIELD &&
                   sizeof(KilnPluginInfo) >= FIRST_INFO,
               "members are lost: raise KILN_ABI");

/* Static structs that have not grown yet. When one does, grow_component must copy it. */
#define KILN_SAME(T, bytes) _Static_assert(sizeof(T) == (bytes), #T " grew: copy older ones")
KILN_SAME(KilnTensorSpec, 32);
KILN_SAME(KilnSignature, 40);
KILN_SAME(KilnModelUse, 48);

static const uint32_t now[] = KILN_OPS_SIZES;
#define KILN_FIRST(kind, T, first) [KILN_KIND_##kind] = (first),
static const uint32_t first[] = { KILN_TABLES(KILN_FIRST) };
_Static_assert(KILN_COUNT(now) == KILN_KIND_COUNT && KILN_COUNT(first) == KILN_KIND_COUNT,
               "a kind of component has no size");

/* ---- Checks ------------------------------------------------------------------------- */

/* Whether a table has a size that this program can read. */
static KilnStatus check_size(const KilnPluginInfo *info, const char *what, const char *of,
                             size_t has, size_t least, size_t most, KilnError *err)
{
    const char *version = info->version != NULL ? info->version : "?";

    if (has < least)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its %s%s has %zu bytes, fewer than the %zu of ABI %u: rebuild the "
                              "plugin",
                              what, of, has, least, KILN_ABI);
    if (has > most)
        return kiln_error_set(
            err, KILN_E_PLUGIN,
            "built against kiln %.20s, which is newer than this program (%s): its "
            "%s%s has %zu bytes, this program's %zu; update kiln, or rebuild the "
            "plugin",
            version, KILN_VERSION, what, of, has, most);
    return KILN_OK;
}

static KilnStatus check_sizes(const KilnPluginInfo *info, KilnError *err)
{
    const struct {
        const char *name;
        size_t has, least, most;
    } structs[] = {
        { "KilnPluginInfo", info->size, FIRST_INFO, sizeof(KilnPluginInfo) },
        { "KilnComponent", info->component_size, FIRST_COMPONENT, sizeof(KilnComponent) },
        { "KilnField", info->field_size, FIRST_FIELD, sizeof(KilnField) },
        { "KilnTensorSpec", info->tensor_spec_size, sizeof(KilnTensorSpec),
          sizeof(KilnTensorSpec) },
        { "KilnSignature", info->signature_size, sizeof(KilnSignature), sizeof(KilnSignature) },
        { "KilnModelUse", info->model_use_size, sizeof(KilnModelUse), sizeof(KilnModelUse) },
    };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(structs) && status >= 0; i++)
        status = check_size(info, structs[i].name, "", structs[i].has, structs[i].least,
                            structs[i].most, err);
    for (uint32_t i = 0; i < info->n_kinds && i < KILN_KIND_COUNT && status >= 0; i++)
        status = check_size(info, "table of functions of a ", kiln_kind_name((KilnKind)i),
                            info->ops_sizes[i], first[i], now[i], err);
    return status;
}

KilnStatus kiln_plugin_check(const KilnPluginInfo *info, KilnError *err)
{
    if (info == NULL || info->magic != KILN_PLUGIN_MAGIC)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its kiln_plugin_v1 does not describe a kiln plugin: define it with "
                              "KILN_PLUGIN_DEFINE");
    if (info->abi != KILN_ABI)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "built for ABI %u, this program has %u: rebuild the plugin with this "
                              "program's headers",
                              info->abi, KILN_ABI);
    if (check_sizes(info, err) < 0)
        return KILN_E_PLUGIN;
    if (info->components == NULL || info->n_components == 0 || info->components[0] == NULL)
        return kiln_error_set(err, KILN_E_PLUGIN, "it has no components");
    if (info->components[info->n_components - 1] != NULL)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its list of components has no end: write NULL as its last entry, "
                              "and give KILN_PLUGIN_DEFINE the array itself");
    for (size_t i = 0; info->components[i] != NULL; i++)
        if ((uint32_t)info->components[i]->kind >= info->n_kinds ||
            info->components[i]->kind >= KILN_KIND_COUNT)
            return kiln_error_set(err, KILN_E_PLUGIN,
                                  "a component's kind is %d, which kiln does not know",
                                  (int)info->components[i]->kind);
    return KILN_OK;
}

/* ---- Copies --------------------------------------------------------------------------- */

/* A table of `size` bytes that begins with the `has` bytes at `from`, followed by zeros; NULL:
 * memory is out, or there is none. */
static void *grow(KilnArena *arena, const void *from, size_t has, size_t size)
{
    void *table = from != NULL ? kiln_arena_alloc(arena, size) : NULL;

    return table != NULL ? memcpy(table, from, has < size ? has : size) : NULL;
}

/* An options table, with the tables of structs in it. `n` counts its end. */
static const KilnField *grow_fields(KilnArena *arena, const KilnField *fields, size_t n,
                                    size_t row_size)
{
    KilnField *rows = fields != NULL ? kiln_arena_alloc(arena, n * sizeof(*rows)) : NULL;

    for (size_t i = 0; rows != NULL && i < n; i++) {
        memcpy(&rows[i], (const char *)fields + i * row_size, row_size);
        if (rows[i].fields != NULL)
            rows[i].fields = grow_fields(arena, rows[i].fields, rows[i].n_fields, row_size);
    }
    return rows;
}

static const KilnComponent *grow_component(const KilnPluginInfo *info, const KilnComponent *from,
                                           KilnArena *arena)
{
    KilnComponent *component = grow(arena, from, info->component_size, sizeof(*component));

    if (component == NULL)
        return NULL;
    component->fields = grow_fields(arena, component->fields, component->n_fields,
                                    info->field_size);
    /* Of any kind: the union's members are all pointers. */
    component->ops.callback = grow(arena, component->ops.callback, info->ops_sizes[component->kind],
                                   now[component->kind]);
    if (component->kind == KILN_KIND_MODULE && component->ops.module != NULL &&
        component->ops.module->hooks != NULL) {
        KilnModuleOps *ops = (KilnModuleOps *)component->ops.module;

        ops->hooks = grow(arena, ops->hooks, info->ops_sizes[KILN_KIND_CALLBACK],
                          now[KILN_KIND_CALLBACK]);
    }
    return component;
}

static bool is_current(const KilnPluginInfo *info)
{
    return info->component_size == sizeof(KilnComponent) && info->field_size == sizeof(KilnField) &&
           info->n_kinds == KILN_KIND_COUNT && memcmp(info->ops_sizes, now, sizeof(now)) == 0;
}

const KilnComponent *const *kiln_plugin_components(const KilnPluginInfo *info, KilnArena *arena)
{
    if (is_current(info))
        return info->components;
    const KilnComponent **list = kiln_arena_alloc(arena, info->n_components * sizeof(*list));
    for (size_t i = 0; list != NULL && info->components[i] != NULL; i++)
        list[i] = grow_component(info, info->components[i], arena);
    return arena->failed ? NULL : list;
}
