/* Instances: what the builder makes. */
#ifndef KILN_REGISTRY_INSTANCE_H
#define KILN_REGISTRY_INSTANCE_H

#include "kiln/config.h"

struct KilnInstance {
    const KilnComponent *component;
    char *path;
    void *opts;  /* lists of children in it point into `children` */
    void *state; /* component->state_size bytes */
    KilnInstance **children;
    size_t child_count;
    bool started;    /* init was called: release must be */
    int64_t outputs; /* of a model: what kiln_model_setup asked for */
};

/* An error of `self` that begins with one of its options ("root: no such folder") is about the
 * value of that option: put its place and key in front. Others stay. Returns err->status. */
KilnStatus kiln_instance_error(const KilnConfig *config, const KilnInstance *self, KilnError *err);

#endif
