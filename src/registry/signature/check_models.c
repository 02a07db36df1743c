/* Checks whether datamodule, task and models of a config fit each other, by what they declare. What
 * depends on the data is checked again before training (train/step/child_model.c). */
#include <stdlib.h>
#include <string.h>

#include "config/compose.h"
#include "registry/check.h"
#include "registry/signature/model_match.h"
#include "schema/bind.h"
#include "schema/table.h"

/* A component in the config. */
typedef struct Part {
    const KilnComponent *component;
    const KilnConfigNode *map;   /* NULL: only a name */
    const KilnConfigNode *named; /* the node that names it */
    const char *key;
} Part;

/* Datamodule and task; components NULL: there is none, or it is not known. */
typedef struct Triple {
    KilnCheck *check;
    Part data, task;
} Triple;

/* ---- Finding components ------------------------------------------------------------- */

static bool read_part(KilnCheck *check, const KilnConfigNode *node, KilnKind kind, const char *key,
                      Part *ret)
{
    *ret = (Part) { .map = node->kind == KILN_NODE_MAP ? node : NULL, .named = node, .key = key };
    if (kiln_node_component(check->config, check->registry, node, kind, &ret->component, NULL) < 0)
        return false;
    if (ret->map != NULL) {
        ret->named = kiln_node_get(node, KILN_TARGET_KEY);
        ret->key = kiln_node_path(check->config, node);
    }
    return ret->key != NULL;
}

static void find_root_part(KilnCheck *check, const char *key, KilnKind kind, Part *ret)
{
    const KilnConfigNode *node = NULL;

    if (kiln_config_at(check->config, key, &node, NULL) < 0 || kiln_node_is_null(node) ||
        !read_part(check, node, kind, key, ret))
        *ret = (Part) { 0 };
}

/* The model in an option of `user`; false: it is not in the tree, or it is invalid, which is
 * reported elsewhere. */
static bool find_model(KilnCheck *check, const Part *user, const char *option, Part *ret)
{
    const KilnConfigNode *written = user->map != NULL ? kiln_node_get(user->map, option) : NULL;
    const KilnConfigNode *node = NULL;
    const char *key = kiln_arena_printf(kiln_config_arena(check->config), "%s.%s", user->key,
                                        option);

    return written != NULL && key != NULL &&
           kiln_config_resolve(check->config, written, &node, NULL) >= 0 &&
           !kiln_node_is_null(node) && read_part(check, node, KILN_KIND_MODEL, key, ret);
}

/* Set the model of the pair, with the inputs of the model in its inputs_of. */
static bool set_model(KilnCheck *check, KilnModelPair *pair, const Part *model)
{
    Part inner = *model;

    pair->model = model->component->name;
    pair->signature = model->component->ops.model->signature;
    for (int depth = 0; inner.component->ops.model->signature->inputs_of != NULL; depth++) {
        const Part outer = inner;

        if (depth == KILN_MAX_NESTING ||
            !find_model(check, &outer, outer.component->ops.model->signature->inputs_of, &inner))
            return false;
    }
    pair->inputs = inner.component->ops.model->signature->inputs;
    pair->n_inputs = inner.component->ops.model->signature->n_inputs;
    return true;
}

/* ---- What would fit ------------------------------------------------------------------- */

static const KilnModelUse *find_use(const KilnComponent *component, const char *option)
{
    size_t n = 0;
    const KilnModelUse *uses = kiln_component_models(component, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(uses[i].option, option) == 0)
            return &uses[i];
    return NULL;
}

static void put_name(KilnText *text, size_t *n, const char *what, const char *name)
{
    kiln_text_printf(text, "%s%s", (*n)++ == 0 ? what : ", ", name);
}

/* Append the model `outer`, with those inner models with which it fits. */
static void put_composite(const Triple *triple, KilnText *text, const KilnModelPair *like,
                          const KilnComponent *outer, size_t *n)
{
    const KilnRegistry *registry = triple->check->registry;
    const char *option = outer->ops.model->signature->inputs_of;
    const KilnModelUse *use = find_use(outer, option);

    for (size_t i = 0; i < registry->count && use != NULL; i++) {
        const KilnComponent *inner = registry->items[i];

        if (inner->kind != KILN_KIND_MODEL || inner->ops.model->signature->inputs_of != NULL)
            continue;
        const KilnSignature *signature = inner->ops.model->signature;
        KilnModelPair whole = *like;
        const KilnModelPair part = { .use = use, .signature = signature };

        whole.inputs = signature->inputs;
        whole.n_inputs = signature->n_inputs;
        whole.signature = outer->ops.model->signature;
        if (kiln_model_match(&whole).misfit != KILN_FITS ||
            kiln_model_match(&part).misfit != KILN_FITS)
            continue;
        put_name(text, n, "; models that fit: ", outer->name);
        kiln_text_printf(text, " with %s=%s", option, inner->name);
    }
}

/* Append the models that fit where `like`'s does not. */
static void put_models(const Triple *triple, KilnText *text, const KilnModelPair *like)
{
    const KilnRegistry *registry = triple->check->registry;
    size_t n = 0;

    for (size_t i = 0; i < registry->count; i++) {
        const KilnComponent *c = registry->items[i];
        KilnModelPair pair = *like;

        if (c->kind != KILN_KIND_MODEL)
            continue;
        pair.signature = c->ops.model->signature;
        pair.inputs = pair.signature->inputs;
        pair.n_inputs = pair.signature->n_inputs;
        if (pair.signature->inputs_of != NULL)
            put_composite(triple, text, like, c, &n);
        else if (kiln_model_match(&pair).misfit == KILN_FITS)
            put_name(text, &n, "; models that fit: ", c->name);
    }
    if (n == 0)
        kiln_text_append(text, "; no model that is known fits");
}

/* Whether a datamodule has what the task reads, and something to feed its models. */
static bool suits_task(const KilnComponent *task, const KilnDataModuleOps *data)
{
    size_t n = 0;
    const KilnModelUse *uses = kiln_component_models(task, &n);
    bool suits = kiln_features_unmet(task->ops.module->features, task->ops.module->n_features,
                                     data->features, data->n_features) == NULL;

    for (size_t i = 0; i < n && suits; i++) {
        suits = uses[i].own;
        for (size_t f = 0; f < data->n_features && !suits; f++)
            suits = kiln_model_is_fed(&uses[i], &data->features[f]);
    }
    return suits;
}

static bool says_what_it_reads(const KilnComponent *task)
{
    size_t n = 0;

    (void)kiln_component_models(task, &n);
    return n > 0 || task->ops.module->n_features > 0;
}

/* Append the tasks that fit the datamodule, and the datamodules that fit the task: either may be
 * the one that was meant. */
static void put_others(const Triple *triple, KilnText *text)
{
    const KilnRegistry *registry = triple->check->registry;
    const KilnDataModuleOps *data = triple->data.component->ops.datamodule;
    size_t n_tasks = 0, n_datamodules = 0;

    for (size_t i = 0; i < registry->count; i++) {
        const KilnComponent *c = registry->items[i];

        if (c->kind == KILN_KIND_MODULE && says_what_it_reads(c) && suits_task(c, data))
            put_name(text, &n_tasks, "; tasks that fit: ", c->name);
    }
    if (n_tasks == 0)
        kiln_text_append(text, "; no task that is known fits");
    for (size_t i = 0; i < registry->count; i++) {
        const KilnComponent *c = registry->items[i];

        if (c->kind == KILN_KIND_DATAMODULE && c->ops.datamodule->features != NULL &&
            suits_task(triple->task.component, c->ops.datamodule))
            put_name(text, &n_datamodules, "; datamodules that fit: ", c->name);
    }
    if (n_datamodules == 0)
        kiln_text_append(text, "; no datamodule that is known fits");
}

/* ---- Checks --------------------------------------------------------------------------- */

static void report(const Triple *triple, const Part *part, KilnText *text)
{
    KilnError err = { 0 };

    (void)kiln_text_to_error(text, KILN_E_SHAPE, &err);
    kiln_check_report(triple->check, part->key, part->named, part->named, &err);
}

static const char *text_of(const Triple *triple, const char *what, const Part *part)
{
    const char *text = kiln_arena_printf(kiln_config_arena(triple->check->config), "%s%s", what,
                                         part->component->name);

    return text != NULL ? text : "";
}

/* Check one model under its user. */
static void check_pair(const Triple *triple, const Part *user, const KilnModelUse *use,
                       const Part *model)
{
    const KilnDataModuleOps *data = triple->data.component != NULL
                                        ? triple->data.component->ops.datamodule
                                        : NULL;
    const bool task = user->component->kind == KILN_KIND_MODULE;
    KilnModelPair pair = { .user = text_of(triple, task ? "task " : "", user), .use = use };
    KilnText text = { 0 };

    if (!set_model(triple->check, &pair, model))
        return;
    if (use->own) {
        pair.given = use->feeds;
        pair.n_given = use->n_feeds;
    } else if (task && data != NULL) {
        pair.giver = text_of(triple, "datamodule ", &triple->data);
        pair.given = data->features;
        pair.n_given = data->n_features;
    }
    const KilnModelMatch match = kiln_model_match(&pair);
    if (match.misfit == KILN_FITS)
        return;
    kiln_misfit_text(&text, &pair, &match);
    if (match.misfit == KILN_MISFIT_DATA)
        put_others(triple, &text);
    else if (match.misfit != KILN_MISFIT_AMBIGUOUS)
        put_models(triple, &text, &pair);
    report(triple, match.misfit == KILN_MISFIT_DATA ? user : model, &text);
}

/* Check the models of `user`, and those in them. */
static void check_models(const Triple *triple, const Part *user, int depth)
{
    size_t n = 0;
    const KilnModelUse *uses = kiln_component_models(user->component, &n);
    Part model;

    for (size_t i = 0; i < n && depth < KILN_MAX_NESTING; i++)
        if (find_model(triple->check, user, uses[i].option, &model)) {
            check_pair(triple, user, &uses[i], &model);
            check_models(triple, &model, depth + 1);
        }
}

/* Check the features that the task reads itself. Returns whether they are there. */
static bool check_task(const Triple *triple)
{
    const KilnModuleOps *task = triple->task.component->ops.module;
    const KilnDataModuleOps *data = triple->data.component != NULL
                                        ? triple->data.component->ops.datamodule
                                        : NULL;
    const KilnTensorSpec *unmet = NULL;
    KilnText text = { 0 };

    if (data != NULL && data->features != NULL)
        unmet = kiln_features_unmet(task->features, task->n_features, data->features,
                                    data->n_features);
    if (unmet == NULL)
        return true;
    kiln_text_printf(&text, "%s needs ", triple->task.component->name);
    kiln_wanted_text(&text, unmet, 1);
    kiln_text_printf(&text, ", but datamodule %s gives ", triple->data.component->name);
    kiln_given_text(&text, data->features, data->n_features);
    put_others(triple, &text);
    report(triple, &triple->task, &text);
    return false;
}

void kiln_check_models(KilnCheck *check)
{
    Triple triple = { .check = check };

    find_root_part(check, "datamodule", KILN_KIND_DATAMODULE, &triple.data);
    find_root_part(check, "task", KILN_KIND_MODULE, &triple.task);
    if (triple.task.component != NULL && check_task(&triple))
        check_models(&triple, &triple.task, 0);
}
