/* Whether a model fits under the module or model that uses it: matching of what is fed with the
 * model's inputs, and of what is needed with its outputs. Of declarations alone, so that the same
 * rules hold for a config (check_models.c) and for data (train/step/child_model.c). */
#ifndef KILN_REGISTRY_SIGNATURE_MODEL_MATCH_H
#define KILN_REGISTRY_SIGNATURE_MODEL_MATCH_H

#include "base/text.h"
#include "kiln/module.h"

/* The sides of a use. All borrowed. */
typedef struct KilnModelPair {
    const char *user;  /* "task vision" */
    const char *giver; /* of the data's features: "datamodule digits" */
    const KilnModelUse *use;
    const char *model;            /* its name: "resnet" */
    const KilnTensorSpec *inputs; /* of its signature, or of the model in its inputs_of */
    size_t n_inputs;
    const KilnSignature *signature; /* its outputs */
    const KilnTensorSpec *given;    /* features of the data, or own values; NULL: unknown */
    size_t n_given;
} KilnModelPair;

typedef enum KilnMisfit {
    KILN_FITS,
    KILN_MISFIT_DATA,      /* nothing of the data is fed */
    KILN_MISFIT_INPUT,     /* an input gets nothing */
    KILN_MISFIT_AMBIGUOUS, /* an input could get several values */
    KILN_MISFIT_OUTPUT     /* a need is not met */
} KilnMisfit;

typedef struct KilnModelMatch {
    KilnMisfit misfit;
    size_t at;                        /* number of the input or need that does not fit */
    size_t given[KILN_MODEL_VALUES];  /* for each input its value's number in `given`; SIZE_MAX: it
                                       * is absent, or `given` is unknown */
    size_t output[KILN_MODEL_VALUES]; /* for each need the number of the output */
} KilnModelMatch;

KilnModelMatch kiln_model_match(const KilnModelPair *pair);
/* Whether the inputs of the pair's model fit; nothing about its outputs. */
KilnMisfit kiln_model_match_inputs(const KilnModelPair *pair, KilnModelMatch *ret);
/* Whether `use` would feed the model a value like this. */
bool kiln_model_is_fed(const KilnModelUse *use, const KilnTensorSpec *given);
/* The first of a module's needs (KilnModuleOps.features) that no feature of that name meets; NULL:
 * all are met. */
const KilnTensorSpec *kiln_features_unmet(const KilnTensorSpec *needs, size_t n_needs,
                                          const KilnTensorSpec *given, size_t n_given);
/* Append what does not fit: "resnet takes an image, but datamodule text gives tokens". */
void kiln_misfit_text(KilnText *text, const KilnModelPair *pair, const KilnModelMatch *match);
/* Append what is wanted or given: "an image and a label of i32", with names that say more than the
 * contents, and whether what is given varies. */
void kiln_wanted_text(KilnText *text, const KilnTensorSpec *specs, size_t n);
void kiln_given_text(KilnText *text, const KilnTensorSpec *specs, size_t n);
/* Append what a component declares, for help: "takes image f32 [height, width, channels]; gives
 * logits f32 [classes]"; nothing of kinds that have no part in it. */
void kiln_signature_text(KilnText *text, const KilnComponent *component);
/* The declaration of a feature of the data. */
KilnTensorSpec kiln_feature_spec(const KilnFeature *feature);
/* The models that a component has in its options; of modules and models, else none. */
const KilnModelUse *kiln_component_models(const KilnComponent *component, size_t *ret_n);
/* Check what a component declares of tensors and models; KILN_E_PLUGIN. */
KILN_NODISCARD KilnStatus kiln_signature_check(const KilnComponent *component, KilnError *err);

#endif
