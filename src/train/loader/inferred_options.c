/* Asks the datamodule what it inferred, and puts it into the config or writes it as YAML. */
#include "train/loader/inferred_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "config/provenance/origin.h"
#include "config/tree/edit.h"
#include "config/yaml/yaml_writer.h"
#include "schema/table.h"
#include "train/checkpoint/resume.h"

/* Whether a config can't have the key: it would name a component. */
static bool is_reserved(const KilnInferredOption *option)
{
    return option->key != NULL && strcmp(option->key, KILN_TARGET_KEY) == 0;
}

static void ask(const KilnTrainer *trainer,
                void (*add)(void *ctx, const KilnInferredOption *option), void *ctx)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;

    if (ops->inferred == NULL || trainer->fitted != NULL)
        return;
    kiln_call_enter(trainer->datamodule, "inferred");
    ops->inferred(trainer->datamodule, add, ctx);
    kiln_call_leave();
}

/* ---- The config ------------------------------------------------------------------------------ */

typedef struct Keeper {
    KilnTrainer *trainer;
    KilnStatus status;
    KilnError err;
} Keeper;

static void keep(void *ctx, const KilnInferredOption *option)
{
    Keeper *keeper = ctx;
    KilnTrainer *trainer = keeper->trainer;
    const char *datamodule = kiln_instance_path(trainer->datamodule);
    KilnText path = { 0 }, by = { 0 };

    if (keeper->status < 0 || is_reserved(option))
        return;
    kiln_text_append(&path, datamodule);
    if (option->key != NULL)
        kiln_text_printf(&path, ".%s", option->option);
    kiln_text_printf(&by, KILN_ORIGIN_INFERRED "%s", option->from);
    keeper->status = path.failed || by.failed
                         ? kiln_error_nomem(&keeper->err, strlen(option->from))
                         : kiln_config_put(trainer->config, path.data,
                                           option->key != NULL ? option->key : option->option,
                                           option->value, by.data, &keeper->err);
    trainer->inferred = true;
    kiln_text_release(&path);
    kiln_text_release(&by);
}

KilnStatus kiln_inferred_options_keep(KilnTrainer *trainer, KilnError *err)
{
    Keeper keeper = { .trainer = trainer };
    char *yaml = NULL;

    ask(trainer, keep, &keeper);
    if (keeper.status < 0) {
        if (err != NULL)
            *err = keeper.err;
        return kiln_error_prefix(
            err, "datamodule %s: inferred: ", kiln_instance_name(trainer->datamodule));
    }
    if (!trainer->inferred)
        return KILN_OK;
    KilnStatus status = kiln_config_yaml(trainer->config, NULL, true, &yaml, err);
    if (status < 0)
        return status;
    kiln_resume_drop_path(yaml);
    free(trainer->config_yaml);
    trainer->config_yaml = yaml;
    return KILN_OK;
}

/* ---- YAML ------------------------------------------------------------------------------------ */

typedef struct Writer {
    KilnMaker maker;
    KilnConfigNode *options; /* of the datamodule */
} Writer;

/* The mapping at `key`, which is made if it is new; NULL: memory is out. */
static KilnConfigNode *mapping_at(const KilnMaker *maker, KilnConfigNode *map, const char *key)
{
    KilnEntry *entry = kiln_node_entry(map, key);

    if (entry == NULL)
        entry = kiln_node_append(maker->arena, map, kiln_arena_strdup(maker->arena, key),
                                 maker->origin, kiln_node_new(maker, KILN_NODE_MAP));
    return entry != NULL ? entry->value : NULL;
}

static void add(void *ctx, const KilnInferredOption *option)
{
    Writer *writer = ctx;
    KilnArena *arena = writer->maker.arena;
    const char *key = option->key != NULL ? option->key : option->option;
    KilnConfigNode *map = option->key == NULL
                              ? writer->options
                              : mapping_at(&writer->maker, writer->options, option->option);
    KilnConfigNode *value = NULL;

    if (!is_reserved(option) && kiln_node_parse(arena, option->value, "", &value, NULL) >= 0)
        (void)kiln_node_append(arena, map, kiln_arena_strdup(arena, key), writer->maker.origin,
                               value);
}

KilnStatus kiln_inferred_options_write(const KilnTrainer *trainer, KilnText *text, KilnError *err)
{
    KilnArena arena = { 0 };
    Writer writer = { .maker = { .arena = &arena } };
    KilnConfigNode *root = kiln_node_new(&writer.maker, KILN_NODE_MAP);
    KilnStatus status = KILN_OK;

    if (root != NULL)
        writer.options = mapping_at(&writer.maker, root, kiln_instance_path(trainer->datamodule));
    if (writer.options != NULL)
        ask(trainer, add, &writer);
    if (arena.failed)
        status = kiln_error_nomem(err, 1);
    else if (writer.options->count > 0)
        status = kiln_write_node(&(KilnYamlWriter) { .text = text }, root, err);
    kiln_arena_release(&arena);
    return status;
}
