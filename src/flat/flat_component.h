/* A component of a caller that knows no structs, and what its instances hold. */
#ifndef KILN_FLAT_FLAT_COMPONENT_H
#define KILN_FLAT_FLAT_COMPONENT_H

#include "base/arena.h"
#include "kiln/flat/component.h"

enum { KILN_FLAT_OPTIONS = 64 }; /* most of one component, those of every datamodule among them */

struct KilnFlatComponent {
    KilnComponent component; /* comes first: an instance leads to it */
    KilnArena arena;         /* of texts */
    KilnField fields[KILN_FLAT_OPTIONS + 1];
    size_t n_fields, first_own; /* before those are the options of every datamodule */
    KilnFlatCreate *create;
    KilnFlatDestroy *destroy;
    void *ctx;
    KilnCallbackOps callback;
    KilnMetricOps metric;
    KilnDataModuleOps datamodule;
    KilnFlatHook *hook;
    KilnFlatSave *save;
    KilnFlatLoad *load;
    KilnFlatCompute *compute;
    KilnFlatSetup *setup;
    KilnFlatGet *get;
};

/* The state of every instance begins with the caller's object. */
typedef struct KilnFlatObject {
    void *object;
    bool created;
} KilnFlatObject;

const KilnFlatComponent *kiln_flat_component_of(const KilnInstance *self);
void *kiln_flat_object(KilnInstance *self);
/* The release function of every component that holds nothing else. */
void kiln_flat_object_release(KilnInstance *self);

/* Set the tables of functions and the sizes of a new component. */
void kiln_flat_metric_init(KilnFlatComponent *component);
void kiln_flat_datamodule_init(KilnFlatComponent *component);

#endif
