/* Makes examples from options tables: values, overrides, config files. Texts are in the arena; they
 * may be NULL once it has failed. */
#ifndef KILN_CLI_HELP_EXAMPLE_H
#define KILN_CLI_HELP_EXAMPLE_H

#include "base/text.h"
#include "kiln/embed/config.h"

/* Where a component goes in a config. */
typedef struct KilnComponentSlot {
    const char *key;       /* its node: "model", "callbacks.early_stopping" */
    const char *overrides; /* that put it there: " model=resnet"; "" when the config has it */
    bool listed;           /* it is an item of a list: no override reaches its options */
} KilnComponentSlot;

/* The slot where the composed config (NULL: none) has the component, else where one of its kind can
 * go. */
KilnComponentSlot kiln_component_slot_find(KilnArena *arena, const KilnConfig *config,
                                           const KilnComposeRequest *request,
                                           const KilnComponent *component);

/* The option that makes the best example, and a valid value that is not its default; NULL: none. */
const KilnField *kiln_example_field(KilnArena *arena, const KilnField *fields,
                                    const char **ret_value);
/* " KEY.NAME=VALUE" for each required option. */
const char *kiln_example_required(KilnArena *arena, const KilnField *fields, const char *key);
/* Append "_target_: kind/name" and all options with their defaults, as YAML lines. */
void kiln_example_file(KilnText *text, const KilnComponent *component, int indent);

/* Overrides with which a task, datamodule or model that does not fit the default config composes:
 * " task=classification model=text_cnn"; "" if it fits, or nothing does. (companions.c) */
const char *kiln_example_companions(KilnArena *arena, const KilnRegistry *registry,
                                    const KilnComponent *component);

#endif
