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

/* Find a task for the data and the network. */
static bool search_task(const KilnRegistry *registry, Choice *choice)
{
    const size_t n = kiln_registry_count(registry);

    for (size_t i = 0; i < n; i++) {
        choice->task = kiln_registry_at(registry, i);
        if (choice->task->kind == KILN_KIND_MODULE && fits(choice))
            return true;
    }
    return false;
}

/* Find a task, and data or a network, that fit. */
static bool search(const KilnRegistry *registry, Choice *choice, bool wants_data)
{
    const size_t n = kiln_registry_count(registry);

    for (size_t i = 0; i < n; i++) {
        choice->task = kiln_registry_at(registry, i);
        for (size_t j = 0; j < n && choice->task->kind == KILN_KIND_MODULE; j++) {
            const KilnComponent *other = kiln_registry_at(registry, j);

            if (other->kind != (wants_data ? KILN_KIND_DATAMODULE : KILN_KIND_MODEL))
                continue;
            *(wants_data ? &choice->data : &choice->model) = other;
            if (fits(choice))
                return true;
        }
    }
    return false;
}

/* The same for data. mlp takes any vector and row; other networks may need certain columns. */
static bool search_for_data(const KilnRegistry *registry, Choice *choice)
{
    choice->model = kiln_registry_find(registry, KILN_KIND_MODEL, "mlp");
    return (choice->model != NULL && search_task(registry, choice)) ||
           search(registry, choice, false);
}

/* The same for a task: find data and a network. */
static bool search_for_task(const KilnRegistry *registry, Choice *choice)
{
    const size_t n = kiln_registry_count(registry);

    for (size_t i = 0; i < n; i++) {
        choice->data = kiln_registry_at(registry, i);
        for (size_t j = 0; j < n && choice->data->kind == KILN_KIND_DATAMODULE; j++) {
            choice->model = kiln_registry_at(registry, j);
            if (choice->model->kind == KILN_KIND_MODEL && fits(choice))
                return true;
        }
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
    if (!(is_data ? search_for_data(registry, &choice) : search(registry, &choice, true)))
        return "";
    if (is_data)
        return kiln_arena_printf(arena, " task=%s model=%s", choice.task->name, choice.model->name);
    return kiln_arena_printf(arena, " task=%s datamodule=%s%s", choice.task->name,
                             choice.data->name,
                             kiln_example_required(arena, choice.data->fields, "datamodule"));
}
