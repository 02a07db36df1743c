/* Fuzzes interpolation: every value of a config that is the input, resolved. */
#include "fuzz.h"

#include "config/yaml/yaml_reader.h"
#include "config/composed.h"
#include "config/yaml/yaml_writer.h"

static void resolve_all(const KilnConfig *config, const KilnConfigNode *node, int depth)
{
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_config_resolve(config, node, &value, &err);

    fuzz_check_message(status, &err);
    fuzz_require(status < 0 || value != NULL, "resolved to nothing", "");
    kiln_interpolation_target(config, node);
    for (size_t i = 0; node->kind != KILN_NODE_SCALAR && i < node->count && depth < 100; i++)
        resolve_all(config, node->entries[i].value, depth + 1);
}

static void write_all(KilnConfig *config, bool resolve)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text, .config = config, .resolve = resolve };
    KilnError err = { 0 };

    fuzz_check_message(kiln_write_node(&writer, config->root, &err), &err);
    kiln_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    KilnWarning *warnings = NULL;
    KilnVariable *variables = NULL;
    KilnConfig config = { .config_name = "config", .warnings = &warnings, .variables = &variables };
    KilnMaker maker = { .arena = &config.storage, .origin = { .source = "config.yaml" } };
    KilnError err = { 0 };

    config.arena = &config.storage;
    if (kiln_yaml_read(&maker, text, size, false, &config.root, &err) >= 0 && config.root != NULL) {
        resolve_all(&config, config.root, 0);
        write_all(&config, false);
        write_all(&config, true);
    }
    kiln_arena_release(&config.storage);
    free(text);
    return 0;
}
