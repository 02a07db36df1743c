#include "tests/support/config_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"

void tree_write(const Tree *tree, const char *path, const char *text, size_t size)
{
    char whole[512], folder[512];
    KilnError err = { 0 };

    snprintf(whole, sizeof(whole), "%s/%s", tree->dir, path);
    snprintf(folder, sizeof(folder), "%s", whole);
    *strrchr(folder, '/') = '\0';
    if (kiln_dir_make(folder, &err) < 0 || kiln_file_write(whole, text, size, &err) < 0)
        fail_msg("%s", err.text);
}

Tree tree_make(const TreeFile *files)
{
    Tree tree = { .dir = "/tmp/kiln-tree-XXXXXX" };

    if (mkdtemp(tree.dir) == NULL)
        fail_msg("no temporary folder");
    for (; files->path != NULL; files++)
        tree_write(&tree, files->path, files->text, strlen(files->text));
    return tree;
}

void tree_remove(const Tree *tree)
{
    KilnError err = { 0 };

    if (kiln_path_remove(tree->dir, &err) < 0)
        fail_msg("%s", err.text);
}

char *tree_messages(const Tree *tree, const KilnErrors *errors)
{
    size_t size = 1 << 16, n = 0, length = strlen(tree->dir);
    char *all = calloc(1, size);

    assert_non_null(all);
    for (size_t i = 0; i < kiln_errors_count(errors); i++) {
        for (const char *p = kiln_errors_text(errors, i); *p != '\0' && n + 2 < size;) {
            if (strncmp(p, tree->dir, length) == 0) {
                all[n++] = 'T';
                p += length;
            } else {
                all[n++] = *p++;
            }
        }
        all[n++] = '\n';
    }
    return all;
}

KilnStatus tree_compose(const Tree *tree, const KilnComposeHooks *hooks,
                        const char *const *overrides, KilnConfig **ret, char **ret_messages)
{
    KilnComposeRequest request = { .config_path = tree->dir, .overrides = overrides };
    KilnErrors *errors = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    assert_int_equal(status, KILN_OK);
    status = kiln_config_compose(&request, hooks, ret, errors);
    if (status < 0 && kiln_errors_count(errors) == 0)
        fail_msg("failed with status %d and no message", status);
    if (status >= 0 && kiln_errors_count(errors) > 0)
        fail_msg("no failure, but: %s", kiln_errors_text(errors, 0));
    *ret_messages = tree_messages(tree, errors);
    kiln_errors_free(errors);
    return status;
}

char *tree_yaml(const Tree *tree, const char *const *overrides, bool resolve)
{
    KilnConfig *config = NULL;
    char *messages = NULL, *yaml = NULL;
    KilnError err = { 0 };

    if (tree_compose(tree, NULL, overrides, &config, &messages) < 0)
        return messages;
    free(messages);
    if (kiln_config_yaml(config, NULL, resolve, &yaml, &err) < 0) {
        yaml = malloc(sizeof(err.text));
        assert_non_null(yaml);
        memcpy(yaml, err.text, sizeof(err.text));
    }
    kiln_config_free(config);
    return yaml;
}
