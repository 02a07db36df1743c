/* What differs between a run that was resumed and the same one undisturbed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/verify/differences.h"

static char *in(const char *dir, const char *name)
{
    char *path = kiln_path_join(dir, name);

    return path != NULL ? path : kiln_strdup("");
}

/* Links by where they point to, folders by what is in them. */
static KilnStatus compare_entry(const char *a, const char *b, const char *name,
                                KilnDifferences *found, KilnError *err)
{
    char targets[2][256] = { "", "" };
    char *x = in(a, name), *y = in(b, name);
    ssize_t n = readlink(x, targets[0], sizeof(targets[0]) - 1);
    ssize_t m = readlink(y, targets[1], sizeof(targets[1]) - 1);
    KilnStatus status = KILN_OK;

    if (n >= 0 || m >= 0) {
        if (strcmp(targets[0], targets[1]) != 0)
            kiln_differences_add(found, "checkpoints/%s: points to \"%s\" and \"%s\"", name,
                                 targets[0], targets[1]);
    } else if (!kiln_is_dir(x) || !kiln_is_dir(y)) {
        kiln_differences_add(found, "checkpoints/%s: only in the %s run", name,
                             kiln_is_dir(x) ? "undisturbed" : "resumed");
    } else {
        const size_t before = found->count;

        status = kiln_differences_checkpoints(x, y, found, err);
        if (found->count > before)
            kiln_differences_add(found, "  (the above: checkpoints/%s)", name);
    }
    free(x);
    free(y);
    return status;
}

static KilnStatus compare_folders(const char *a, const char *b, KilnDifferences *found,
                                  KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(a, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++)
        status = compare_entry(a, b, names[i], found, err);
    kiln_names_free(names, n);
    names = NULL;
    n = 0;
    if (status >= 0)
        status = kiln_dir_list(b, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char *path = in(a, names[i]), target[8];

        if (!kiln_is_dir(path) && readlink(path, target, sizeof(target)) < 0)
            kiln_differences_add(found, "checkpoints/%s: only in the resumed run", names[i]);
        free(path);
    }
    kiln_names_free(names, n);
    return status;
}

KilnStatus kiln_differences_runs(const char *whole, const char *resumed, KilnDifferences *found,
                                 KilnError *err)
{
    char *a = in(whole, "checkpoints"), *b = in(resumed, "checkpoints");
    KilnStatus status = compare_folders(a, b, found, err);

    free(a);
    free(b);
    return status >= 0 ? kiln_differences_logs(whole, resumed, found, err) : status;
}
