#include "registry/shared_data.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/data.h"
#include "kiln/files/cache.h"

static struct {
    uint64_t key;
    void (*ready)(void *ctx, bool good); /* NULL: nobody asks */
    void *ctx;
} asked;

static struct {
    uint64_t key;
    KilnInstance *datamodule; /* NULL: none */
    KilnPoll *poll;           /* that it has */
} offered;

uint64_t kiln_shared_data_key(const KilnConfig *config)
{
    static const char *const parts[] = { "datamodule", "seed" };
    uint64_t key = 0;

    for (size_t i = 0; i < KILN_COUNT(parts); i++) {
        char *text = NULL;

        if (kiln_config_yaml(config, parts[i], true, &text, NULL) < 0)
            return 0;
        key = kiln_hash(text, strlen(text), key);
        free(text);
    }
    return key;
}

/* A component in Python talks to a process of its own. */
static bool has_python(const KilnInstance *instance)
{
    bool has = strncmp(instance->component->name, "python:", 7) == 0;

    for (size_t i = 0; i < instance->child_count && !has; i++)
        has = has_python(instance->children[i]);
    return has;
}

static bool is_shareable(const KilnInstance *datamodule)
{
    return datamodule != NULL && datamodule->component->ops.datamodule->shareable &&
           !has_python(datamodule);
}

static void set_printer(KilnInstance *instance, KilnPrinter printer)
{
    instance->printer = printer;
    for (size_t i = 0; i < instance->child_count; i++)
        set_printer(instance->children[i], printer);
}

void kiln_shared_data_ask(uint64_t key, void (*ready)(void *ctx, bool good), void *ctx)
{
    asked.key = key;
    asked.ready = ready;
    asked.ctx = ctx;
}

void kiln_shared_data_offer(const KilnConfig *config, KilnInstance *datamodule, KilnPoll *poll)
{
    void (*ready)(void *ctx, bool good) = asked.ready;

    asked.ready = NULL;
    if (ready == NULL)
        return;
    const bool good = is_shareable(datamodule) && kiln_shared_data_key(config) == asked.key;
    if (good) {
        offered.key = asked.key;
        offered.datamodule = datamodule;
        offered.poll = poll;
    }
    ready(asked.ctx, good);
    offered.datamodule = NULL; /* it is this run's own */
}

KilnInstance *kiln_shared_data_take(const KilnConfig *config, KilnPoll poll)
{
    KilnInstance *datamodule = offered.datamodule;

    if (datamodule == NULL || kiln_shared_data_key(config) != offered.key)
        return NULL;
    offered.datamodule = NULL;
    *offered.poll = poll;
    set_printer(datamodule, config->printer);
    return datamodule;
}
