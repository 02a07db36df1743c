/* Rows of the tables of classes: the ways to write an option that repeat. */
#ifndef KILN_CLI_HYDRA_CLASSES_ROWS_H
#define KILN_CLI_HYDRA_CLASSES_ROWS_H

#include "cli/hydra/classes.h"

/* clang-format off */
/* The option of that name, with the value as it is. */
#define SAME(name) { name, name, KILN_IMPORT_SAME, NULL, NULL }
/* It has another name. */
#define NAMED(name, to) { name, to, KILN_IMPORT_SAME, NULL, NULL }
/* null is the default there, and no value here. */
#define NOT_NULL(name) { name, name, KILN_IMPORT_NOT_NULL, NULL, NULL }
#define NEEDLESS(name) { name, NULL, KILN_IMPORT_NEEDLESS, NULL, NULL }
#define ABSENT(name, benign, note) { name, NULL, KILN_IMPORT_ABSENT, benign, note }
#define END { .from = NULL }
/* A class without a counterpart. */
#define NONE(library, name, kind, note) { library, name, kind, NULL, NULL, note, NULL }
/* clang-format on */

#endif
