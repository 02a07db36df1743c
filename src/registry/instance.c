/* Properties of an instance, and its release. */
#include "registry/instance.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "schema/bind.h"
#include "schema/table.h"

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

void kiln_instance_print(const KilnInstance *self, bool detail, const char *line)
{
    if (self->printer.print != NULL)
        self->printer.print(self->printer.ctx, detail, line);
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
    free(instance->binding);
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

/* The option whose path the message begins with: "a.bin: No such file or directory"; NULL: none. */
static const KilnField *named_path(const KilnInstance *self, const char *message)
{
    for (const KilnField *f = self->component->fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        const char *path = NULL;

        if (f->type != KILN_TYPE_PATH || f->shape != KILN_ONE)
            continue;
        memcpy(&path, (const char *)self->opts + f->offset, sizeof(path));
        const size_t length = path != NULL ? strlen(path) : 0;
        if (length > 0 && strncmp(message, path, length) == 0 && message[length] == ':')
            return f;
    }
    return NULL;
}

KilnStatus kiln_instance_error(const KilnConfig *config, const KilnInstance *self, KilnError *err)
{
    const char *end = err != NULL ? strstr(err->text, ": ") : NULL;
    KilnText option = { 0 }, key = { 0 };

    if (end == NULL)
        return err != NULL ? err->status : KILN_E_INTERNAL;
    const KilnField *path = named_path(self, err->text);
    if (path != NULL) {
        (void)kiln_error_prefix(err, "%s: ", path->name);
        end = err->text + strlen(path->name);
    }
    kiln_text_printf(&option, "%.*s", (int)strcspn(err->text, ".[:"), err->text);
    kiln_text_printf(&key, "%s.%.*s", self->path, (int)(end - err->text), err->text);
    if (!option.failed && !key.failed &&
        kiln_table_find(self->component->fields, option.data) != NULL)
        (void)kiln_error_about_key(config, key.data, err);
    kiln_text_release(&option);
    kiln_text_release(&key);
    return err->status;
}
