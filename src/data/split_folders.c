/* Folders beside those of the splits: a val/ that is called valid/ must not go unnoticed. */
#include "kiln/data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"

/* Is it one of the folders `more`, by whatever path? */
static bool is_one_of(const char *path, const char *const more[], size_t n)
{
    struct stat here, there;
    bool found = false;

    if (stat(path, &here) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        found = found || (stat(more[i], &there) == 0 && there.st_dev == here.st_dev &&
                          there.st_ino == here.st_ino);
    return found;
}

static bool is_split(const char *name)
{
    bool found = false;

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        found = found || strcmp(name, kiln_split_name((KilnSplit)split)) == 0;
    return found;
}

void kiln_split_folders_left_out(const char *root, const char *const more[], size_t n,
                                 void (*add)(void *ctx, const KilnOmission *omission), void *ctx)
{
    char **names;
    size_t count;

    if (kiln_dir_list(root, &names, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        char *path = kiln_path_join(root, names[i]);

        if (path != NULL && names[i][0] != '.' && !is_split(names[i]) && kiln_is_dir(path) &&
            !is_one_of(path, more, n))
            add(ctx, &(KilnOmission) {
                         .count = 1,
                         .what = "folders",
                         .example = path,
                         .reason = "the folders of splits are train, val and test",
                     });
        free(path);
    }
    kiln_names_free(names, count);
}
