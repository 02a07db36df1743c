/* Checks what components declare of tensors and models, when they are registered. */
#include <string.h>

#include "registry/signature/model_match.h"
#include "schema/table.h"

/* `what`: "input". */
static KilnStatus check_specs(const KilnTensorSpec *specs, size_t n, const char *what, bool single,
                              KilnError *err)
{
    for (size_t i = 0; i < n; i++) {
        if (specs[i].name == NULL || specs[i].name[0] == '\0' || specs[i].content == 0)
            return kiln_error_set(err, KILN_E_PLUGIN, "%s %zu needs a name and a content", what, i);
        /* A label may have any: regression takes one number or several. */
        if (single && (kiln_content_name(specs[i].content) == NULL ||
                       (specs[i].axes == NULL && specs[i].content != KILN_LABEL)))
            return kiln_error_set(err, KILN_E_PLUGIN, "%s \"%s\" needs one content, and axes", what,
                                  specs[i].name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(specs[i].name, specs[j].name) == 0)
                return kiln_error_set(err, KILN_E_PLUGIN, "two of its %ss are called \"%s\"", what,
                                      specs[i].name);
    }
    return KILN_OK;
}

static KilnStatus check_option(const KilnComponent *component, const char *option, KilnError *err)
{
    const KilnField *field = option != NULL ? kiln_table_find(component->fields, option) : NULL;

    if (field != NULL && field->type == KILN_TYPE_COMPONENT && field->shape == KILN_ONE &&
        field->component_kind == KILN_KIND_MODEL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_PLUGIN,
                          "\"%s\" is no option with a model (KILN_FIELD_COMPONENT)",
                          option != NULL ? option : "");
}

static KilnStatus check_uses(const KilnComponent *component, KilnError *err)
{
    size_t n = 0;
    const KilnModelUse *uses = kiln_component_models(component, &n);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++) {
        status = check_option(component, uses[i].option, err);
        if (status >= 0)
            status = check_specs(uses[i].feeds, uses[i].n_feeds, "value that it feeds", false, err);
        if (status >= 0)
            status = check_specs(uses[i].needs, uses[i].n_needs, "need", true, err);
        if (status >= 0 && uses[i].n_needs > KILN_MODEL_VALUES)
            status = kiln_error_set(err, KILN_E_PLUGIN, "more than %d needs of a model",
                                    KILN_MODEL_VALUES);
    }
    return status;
}

static KilnStatus check_model(const KilnComponent *component, KilnError *err)
{
    const KilnSignature *signature = component->ops.model->signature;

    if (signature == NULL || signature->n_outputs == 0 ||
        (signature->n_inputs == 0) == (signature->inputs_of == NULL))
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its signature needs inputs (or inputs_of) and outputs");
    if (signature->n_inputs > KILN_MODEL_VALUES || signature->n_outputs > KILN_MODEL_VALUES)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "its signature has more than %d inputs or outputs",
                              KILN_MODEL_VALUES);
    KilnStatus status = check_specs(signature->inputs, signature->n_inputs, "input", false, err);
    if (status >= 0)
        status = check_specs(signature->outputs, signature->n_outputs, "output", true, err);
    if (status >= 0 && signature->inputs_of != NULL)
        status = check_option(component, signature->inputs_of, err);
    return status;
}

const KilnModelUse *kiln_component_models(const KilnComponent *component, size_t *ret_n)
{
    const bool module = component->kind == KILN_KIND_MODULE;

    *ret_n = 0;
    if (!module && component->kind != KILN_KIND_MODEL)
        return NULL;
    *ret_n = module ? component->ops.module->n_models : component->ops.model->n_models;
    return module ? component->ops.module->models : component->ops.model->models;
}

KilnStatus kiln_signature_check(const KilnComponent *component, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (component->kind == KILN_KIND_DATAMODULE)
        return check_specs(component->ops.datamodule->features,
                           component->ops.datamodule->n_features, "feature", true, err);
    if (component->kind == KILN_KIND_MODEL)
        status = check_model(component, err);
    else if (component->kind == KILN_KIND_MODULE)
        status = check_specs(component->ops.module->features, component->ops.module->n_features,
                             "feature", true, err);
    return status >= 0 ? check_uses(component, err) : status;
}
