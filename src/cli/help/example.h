/* Examples made from options tables: other values, overrides, a config file. */
#ifndef KILN_CLI_HELP_EXAMPLE_H
#define KILN_CLI_HELP_EXAMPLE_H

#include "base/text.h"
#include "kiln/config.h"

/* Where a component goes in a config. */
typedef struct KilnComponentSlot {
    KilnText key;    /* its node: "model", "callbacks.early_stopping" */
    KilnText choose; /* words that put it there: " model=resnet"; "" when it is there */
    bool listed;     /* it is an item of a list: no override reaches its options */
} KilnComponentSlot;

/* Find the place: where the composed config (NULL: none) has it already, else where
 * a component of its kind can go. */
void kiln_place_find(const KilnConfig *config, const KilnRegistry *registry,
                     const KilnSection *sections, const KilnComponent *component,
                     KilnComponentSlot *ret);
void kiln_place_release(KilnComponentSlot *place);

/* Append a valid value that is not the default; false when none is known. */
bool kiln_example_value(KilnText *text, const KilnField *field);
/* The option that an example changes best, and NULL when there is none. */
const KilnField *kiln_example_field(const KilnField *fields);
/* Append KEY=VALUE for each option that must be given, with a space before each. */
void kiln_example_required(KilnText *text, const KilnField *fields, const char *key);
/* Append "_target_: kind/name" and all options with their defaults, as YAML lines. */
void kiln_example_file(KilnText *text, const KilnComponent *component, int indent);

#endif
