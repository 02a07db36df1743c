/* Instances of components, which build.c makes. */
#ifndef KILN_REGISTRY_INSTANCE_H
#define KILN_REGISTRY_INSTANCE_H

#include "config/composed.h"
#include "kiln/embed/config.h"

struct KilnInstance {
    const KilnComponent *component;
    char *path;
    void *opts;  /* lists of children in it point into `children` */
    void *state; /* component->state_size bytes; NULL: none */
    KilnInstance **children;
    size_t child_count;
    bool started;                     /* init was called, so release must be */
    struct KilnModelBinding *binding; /* of a model that was set up; owned, one block */
    KilnPrinter printer;              /* of the run */
};

/* Print a line to the screen and the log of the run; a `detail` to the log, and to a verbose
 * screen. Any thread may call it. */
void kiln_instance_print(const KilnInstance *self, bool detail, const char *line);

/* If an error of `self` begins with one of its options ("root: no such folder"), or with the path
 * that is an option's value, prefix the origin and key of that value. Returns err->status. */
KilnStatus kiln_instance_error(const KilnConfig *config, const KilnInstance *self, KilnError *err);

#endif
