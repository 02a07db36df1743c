/* Fuzzes composing whole trees with the real components: files, defaults lists, packages,
 * arguments, checks, explaining. What is printed reads back as the same config. */
#include "tree.h"

#include "config/provenance/error_list.h"
#include "config/yaml/yaml_reader.h"
#include "config/tree/tree.h"
#include "kiln/embed/run.h"

/* A config without ${...} printed as it is, and printed resolved, is the same text. */
static void print(const KilnConfig *config)
{
    char *plain = NULL, *resolved = NULL;
    KilnArena arena = { 0 };
    KilnMaker maker = { .arena = &arena, .origin = { .source = "printed" } };
    KilnConfigNode *again = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_config_yaml(config, NULL, false, &plain, &err);

    fuzz_check_message(status, &err);
    if (status >= 0) {
        status = kiln_yaml_read(&maker, plain, strlen(plain), false, &again, &err);
        fuzz_require(status >= 0 || status == KILN_E_RANGE, err.text, plain);
    }
    status = kiln_config_yaml(config, NULL, true, &resolved, &err);
    fuzz_check_message(status, &err);
    if (status >= 0 && plain != NULL && strchr(plain, '$') == NULL)
        fuzz_require(strcmp(plain, resolved) == 0, "resolving changed it", plain);
    kiln_arena_release(&arena);
    free(plain);
    free(resolved);
}

static void explain(const KilnConfig *config)
{
    const KilnConfigNode *root = kiln_config_root(config);

    for (size_t i = 0; i < root->count; i++) {
        const KilnConfigNode *value = root->entries[i].value;
        char *text = NULL;
        KilnError err = { 0 };

        fuzz_check_message(kiln_config_explain(config, root->entries[i].key, &text, &err), &err);
        free(text);
        text = NULL;
        if (value->count > 0 && value->entries[0].key != NULL)
            fuzz_check_message(kiln_config_explain(config,
                                                   kiln_node_path(config, value->entries[0].value),
                                                   &text, &err),
                               &err);
        free(text);
    }
}

static void compose(const FuzzTree *tree, const KilnRegistry *registry)
{
    KilnComposeRequest request = { .config_path = tree->dir,
                                   .overrides = tree->arguments,
                                   .registry = registry,
                                   .sections = kiln_run_sections() };
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;

    if (kiln_errors_new(&errors) < 0)
        return;
    KilnStatus status = kiln_compose(&request, &config, errors);
    fuzz_require(status >= 0 || kiln_errors_failures(errors) > 0, "refused without a word",
                 kiln_status_name(status));
    fuzz_require((status >= 0) == (config != NULL), "status and config disagree", "");
    if (config != NULL) {
        fuzz_require(kiln_errors_failures(errors) == 0, "composed with errors", "");
        status = kiln_config_check(config, registry, errors);
        fuzz_require((status >= 0) == (kiln_errors_failures(errors) == 0),
                     "status and errors of the check disagree", kiln_status_name(status));
        print(config);
        explain(config);
    }
    kiln_config_free(config);
    kiln_errors_free(errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static KilnRegistry *registry; /* of the process, as in the program */
    char *text = fuzz_text(data, size);
    FuzzTree tree;

    if (registry == NULL && kiln_registry_new(&registry, NULL) < 0)
        abort();
    fuzz_tree_write(&tree, text);
    compose(&tree, registry);
    free(text);
    return 0;
}
