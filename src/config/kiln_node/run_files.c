/* Texts for the run folder, and lists for help and completion. */
#include "config/kiln_node/run_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/defaults/group_files.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "config/yaml/yaml_writer.h"

static KilnStatus take(KilnText *text, KilnStatus status, char **ret, KilnError *err)
{
    char *taken = status >= 0 ? kiln_text_take(text) : NULL;

    if (status >= 0 && taken == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        *ret = taken;
    else
        kiln_text_release(text);
    return status;
}

KilnStatus kiln_config_overrides_yaml(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };

    for (size_t i = 0; i < config->n_arguments; i++) {
        kiln_text_append(&text, "- ");
        kiln_write_string(&text, config->arguments[i]);
        kiln_text_char(&text, '\n');
    }
    if (config->n_arguments == 0)
        kiln_text_append(&text, "[]\n");
    return take(&text, KILN_OK, ret, err);
}

KilnStatus kiln_config_job_yaml(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = {
        .text = &text,
        .config = config,
        .resolve = true,
        .references = true,
        .hidden = kiln_config_hides,
    };

    return take(&text, kiln_write_node(&writer, config->root, err), ret, err);
}

KilnStatus kiln_config_own_yaml(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text, .config = config };
    KilnConfigNode *own = kiln_node_get(config->root, "kiln");
    KilnEntry entry = { .key = "kiln", .value = own };
    KilnConfigNode root = { .kind = KILN_NODE_MAP, .entries = &entry, .count = own != NULL };

    return take(&text, kiln_write_node(&writer, &root, err), ret, err);
}

/* Is "a/b/.kiln" or ".kiln/" a folder of that name? */
static bool is_own_folder(const char *path)
{
    size_t end = strlen(path), start;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/';)
        start--;
    return end - start == strlen(".kiln") && kiln_starts_with(path + start, ".kiln");
}

bool kiln_config_is_recorded(const KilnConfig *config)
{
    const char *folder = config->search.folders != NULL ? config->search.folders->path : "";
    char *state = kiln_path_join(folder, "state.json");
    bool recorded = is_own_folder(folder) || (state != NULL && kiln_is_file(state));

    free(state);
    return recorded;
}

/* ---- Choices and options ---------------------------------------------------------------- */

size_t kiln_config_selections(const KilnConfig *config, KilnGroupSelection *ret, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < config->n_selections; i++) {
        const KilnSelection *chosen = &config->selections[i];

        if (kiln_starts_with(chosen->key, "kiln/"))
            continue;
        if (n < size)
            ret[n] = (KilnGroupSelection) { .group = chosen->key, .option = chosen->option };
        n++;
    }
    return n;
}

static KilnStatus copy_names(const char **names, char ***ret, size_t *ret_count, KilnError *err)
{
    size_t n = 0, done = 0;
    char **copy;

    while (names != NULL && names[n] != NULL)
        n++;
    copy = names != NULL ? calloc(n + 1, sizeof(*copy)) : NULL;
    while (copy != NULL && done < n && (copy[done] = kiln_strdup(names[done])) != NULL)
        done++;
    if (copy == NULL || done < n) {
        kiln_names_free(copy, done);
        return kiln_error_nomem(err, (n + 1) * sizeof(*copy));
    }
    *ret = copy;
    *ret_count = n;
    return KILN_OK;
}

KilnStatus kiln_group_options(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                              const char *group, bool groups, char ***ret, size_t *ret_count,
                              KilnError *err)
{
    KilnArena arena = { 0 };
    KilnSearch search = { .arena = &arena, .hooks = hooks };
    KilnStatus status = kiln_search_request(&search, request, err);

    if (status >= 0)
        status = copy_names(kiln_search_options(&search, group, groups), ret, ret_count, err);
    kiln_arena_release(&arena);
    return status;
}
