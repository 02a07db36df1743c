/* Makes examples from options tables: values, overrides, config files. */
#ifndef KILN_CLI_HELP_EXAMPLE_H
#define KILN_CLI_HELP_EXAMPLE_H

#include "base/text.h"
#include "kiln/config.h"

/* Where a component goes in a config. */
typedef struct KilnComponentSlot {
    KilnText key;       /* its node: "model", "callbacks.early_stopping" */
    KilnText overrides; /* that put it there: " model=resnet"; "" when the config has it */
    bool listed;        /* it is an item of a list: no override reaches its options */
} KilnComponentSlot;

/* Find the slot: where the composed config (NULL: none) has the component, else where one of its
 * kind can go. */
void kiln_component_slot_find(const KilnConfig *config, const KilnRegistry *registry,
                              const KilnSection *sections, const KilnComponent *component,
                              KilnComponentSlot *ret);
void kiln_component_slot_release(KilnComponentSlot *slot);

/* Append a valid value that is not the default; false when none is known. */
bool kiln_example_value(KilnText *text, const KilnField *field);
/* The option that makes the best example; NULL: none. */
const KilnField *kiln_example_field(const KilnField *fields);
/* Append " KEY.NAME=VALUE" for each required option. */
void kiln_example_required(KilnText *text, const KilnField *fields, const char *key);
/* Append "_target_: kind/name" and all options with their defaults, as YAML lines. */
void kiln_example_file(KilnText *text, const KilnComponent *component, int indent);

#endif
