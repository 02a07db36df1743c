/* Checks the features of the data against declarations, and runs a module's setup. */
#include "train/step/module_data.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/call.h"
#include "registry/signature/model_match.h"

/* The error is "WHO a label, but the data has an image". */
static KilnStatus check(const KilnTensorSpec *needs, size_t n, const char *who,
                        const KilnDataSpec *spec, KilnError *err)
{
    KilnTensorSpec *given = calloc(spec->n_features + 1, sizeof(*given));
    KilnText text = { 0 };
    KilnStatus status = KILN_OK;

    if (given == NULL)
        return kiln_error_nomem(err, spec->n_features * sizeof(*given));
    for (size_t i = 0; i < spec->n_features; i++)
        given[i] = kiln_feature_spec(&spec->features[i]);
    const KilnTensorSpec *unmet = kiln_features_unmet(needs, n, given, spec->n_features);
    if (unmet != NULL) {
        kiln_text_append(&text, who);
        kiln_wanted_text(&text, unmet, 1);
        kiln_text_append(&text, ", but the data has ");
        kiln_given_text(&text, given, spec->n_features);
        status = kiln_text_to_error(&text, KILN_E_SHAPE, err);
    }
    free(given);
    return status;
}

KilnStatus kiln_datamodule_check_spec(const KilnInstance *datamodule, const KilnDataSpec *spec,
                                      KilnError *err)
{
    const KilnDataModuleOps *ops = kiln_instance_component(datamodule)->ops.datamodule;
    char who[256];

    snprintf(who, sizeof(who), "datamodule %s declares ", kiln_instance_name(datamodule));
    return check(ops->features, ops->n_features, who, spec, err);
}

KilnStatus kiln_module_setup(KilnInstance *module, const KilnScope *scope, const KilnDataSpec *spec,
                             KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(module)->ops.module;
    char who[256];

    snprintf(who, sizeof(who), "task %s needs ", kiln_instance_name(module));
    KilnStatus status = check(ops->features, ops->n_features, who, spec, err);
    return status < 0 ? status
                      : KILN_CALLED(module, "setup", ops->setup(module, scope, spec, err), err);
}
