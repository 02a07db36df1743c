/* What must be chosen with a task, a datamodule or a model that does not fit the default config. */
#include "cli/help/example.h"

#include <string.h>

#include "registry/registry.h"
#include "registry/signature/model_match.h"

/* A task, the data and a network. */
typedef struct Choice {
    const KilnComponent *task, *data, *model;
} Choice;

/* Whether the task's network of that option is the config's `model` unless another one is given. */
static bool is_model_of_config(const KilnComponent *task, const char *option)
{
    for (const KilnField *f = task->fields; f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->value != NULL && strcmp(f->name, option) == 0)
            return strcmp(f->value, "${model}") == 0;
    return false;
}

/* Whether the network fits one of the task's options. */
static bool fits_use(const Choice *choice, const KilnModelUse *use)
{
    const KilnDataModuleOps *data = choice->data->ops.datamodule;
    const KilnSignature *signature = choice->model->ops.model->signature;
    const KilnModelPair pair = { .user = choice->task->name,
                                 .giver = choice->data->name,
                                 .use = use,
                                 .model = choice->model->name,
                                 .inputs = signature->inputs,
                                 .n_inputs = signature->n_inputs,
                                 .signature = signature,
                                 .given = data->features,
                                 .n_given = data->n_features };

    return is_model_of_config(choice->task, use->option) &&
           kiln_model_match(&pair).misfit == KILN_FITS;
}

/* Whether the task can train the network on the data. */
static bool fits(const Choice *choice)
{
    const KilnModuleOps *task = choice->task->ops.module;
    const KilnDataModuleOps *data = choice->data->ops.datamodule;
    const KilnSignature *signature = choice->model->ops.model->signature;
    bool all = task->n_models > 0 && signature != NULL && signature->inputs_of == NULL &&
               data->features != NULL &&
               kiln_features_unmet(task->features, task->n_features, data->features,
                                   data->n_features) == NULL;

    for (size_t i = 0; i < task->n_models && all; i++)
        all = fits_use(choice, &task->models[i]);
    return all;
}

/* Set *slot, a member of the choice, to a component of the kind that fits. Of networks the plainest
 * comes first: another one may need more than signatures say (dlrm: categories). */
static bool find_fit(const KilnRegistry *registry, KilnKind kind, const KilnComponent **slot,
                     const Choice *choice)
{
    *slot = kind == KILN_KIND_MODEL ? kiln_registry_find(registry, kind, "mlp") : NULL;
    if (*slot != NULL && fits(choice))
        return true;
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        *slot = kiln_registry_at(registry, i);
        if ((*slot)->kind == kind && fits(choice))
            return true;
    }
    return false;
}

/* Find a task, and a component of the other kind, that fit. */
static bool search(const KilnRegistry *registry, Choice *choice)
{
    const bool wants_data = choice->data == NULL;

    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        choice->task = kiln_registry_at(registry, i);
        if (choice->task->kind == KILN_KIND_MODULE &&
            find_fit(registry, wants_data ? KILN_KIND_DATAMODULE : KILN_KIND_MODEL,
                     wants_data ? &choice->data : &choice->model, choice))
            return true;
    }
    return false;
}

/* The same for a task: find data and a network. */
static bool search_for_task(const KilnRegistry *registry, Choice *choice)
{
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        choice->data = kiln_registry_at(registry, i);
        if (choice->data->kind == KILN_KIND_DATAMODULE &&
            find_fit(registry, KILN_KIND_MODEL, &choice->model, choice))
            return true;
    }
    return false;
}

/* What must be chosen with a task that does not fit the default data and network. */
static const char *task_companions(KilnArena *arena, const KilnRegistry *registry,
                                   const KilnComponent *task)
{
    Choice choice = { .task = task,
                      .data = kiln_registry_find(registry, KILN_KIND_DATAMODULE, "digits"),
                      .model = kiln_registry_find(registry, KILN_KIND_MODEL, "cnn") };

    if (choice.data == NULL || choice.model == NULL || fits(&choice) ||
        !search_for_task(registry, &choice))
        return "";
    return kiln_arena_printf(arena, " datamodule=%s model=%s%s", choice.data->name,
                             choice.model->name,
                             kiln_example_required(arena, choice.data->fields, "datamodule"));
}

const char *kiln_example_companions(KilnArena *arena, const KilnRegistry *registry,
                                    const KilnComponent *component)
{
    if (component->kind == KILN_KIND_MODULE)
        return task_companions(arena, registry, component);
    const bool is_data = component->kind == KILN_KIND_DATAMODULE;
    Choice choice = {
        .task = kiln_registry_find(registry, KILN_KIND_MODULE, "vision"),
        .data = is_data ? component : kiln_registry_find(registry, KILN_KIND_DATAMODULE, "digits"),
        .model = is_data ? kiln_registry_find(registry, KILN_KIND_MODEL, "cnn") : component,
    };

    if ((!is_data && component->kind != KILN_KIND_MODEL) || choice.task == NULL ||
        choice.data == NULL || choice.model == NULL || fits(&choice))
        return "";
    *(is_data ? &choice.model : &choice.data) = NULL;
    if (!search(registry, &choice))
        return "";
    if (is_data)
        return kiln_arena_printf(arena, " task=%s model=%s", choice.task->name, choice.model->name);
    return kiln_arena_printf(arena, " task=%s datamodule=%s%s", choice.task->name,
                             choice.data->name,
                             kiln_example_required(arena, choice.data->fields, "datamodule"));
}
