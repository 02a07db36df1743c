/* What an instance tells of itself, and its end. */
#include "registry/instance.h"

#include "base/call.h"

#include <stdlib.h>

const void *kiln_opts(const KilnInstance *self)
{
    return self->opts;
}

void *kiln_state(KilnInstance *self)
{
    return self->state;
}

const char *kiln_instance_name(const KilnInstance *self)
{
    return self->component->name;
}

const char *kiln_instance_path(const KilnInstance *self)
{
    return self->path;
}

const KilnComponent *kiln_instance_component(const KilnInstance *self)
{
    return self->component;
}

void kiln_instance_free(KilnInstance *instance)
{
    if (instance == NULL)
        return;
    const KilnComponent *component = instance->component;
    if (instance->started && component->release != NULL) {
        kiln_call_enter(instance, "release");
        component->release(instance);
        kiln_call_leave();
    }
    for (size_t i = instance->child_count; i-- > 0;)
        kiln_instance_free(instance->children[i]);
    free(instance->children);
    kiln_options_free(component->fields, component->opts_size, instance->opts);
    free(instance->state);
    free(instance->path);
    free(instance);
}

void kiln_instances_free(KilnInstance **instances, size_t count)
{
    for (size_t i = count; instances != NULL && i-- > 0;)
        kiln_instance_free(instances[i]);
    free(instances);
}
