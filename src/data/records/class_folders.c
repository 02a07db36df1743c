/* A folder per class, whose files are rows. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/records/records_internal.h"
#include "kiln/array.h"

static KilnStatus add_file(KilnRecords *records, const char *folder, const char *name,
                           const char *class_name, KilnError *err)
{
    const size_t n = (size_t)records->count;
    char *path = kiln_path_join(folder, name);

    if (path == NULL || !KILN_RESERVE(records->class_files, records->class_files_capacity, n + 1)) {
        free(path);
        return kiln_error_nomem(err, n * sizeof(*records->class_files));
    }
    if (!kiln_is_file(path)) {
        free(path);
        return KILN_OK;
    }
    records->class_files[records->count++] = (KilnClassFile) { path, class_name };
    return KILN_OK;
}

static KilnStatus add_class(KilnRecords *records, const char *folder, const char *name,
                            KilnError *err)
{
    char **files = NULL, *class_name = kiln_strdup(name);
    size_t n = 0;

    if (class_name == NULL || !KILN_RESERVE(records->class_names, records->class_names_capacity,
                                            records->n_class_names + 1)) {
        free(class_name);
        return kiln_error_nomem(err, strlen(name));
    }
    records->class_names[records->n_class_names++] = class_name;
    KilnStatus status = kiln_dir_list(folder, &files, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        if (files[i][0] != '.')
            status = add_file(records, folder, files[i], class_name, err);
    kiln_names_free(files, n);
    return status;
}

KilnStatus kiln_records_add_folders(KilnRecords *records, const char *root, KilnError *err)
{
    const int64_t before = records->count;
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(root, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        char *folder = names[i][0] != '.' ? kiln_path_join(root, names[i]) : NULL;

        if (folder != NULL && kiln_is_dir(folder))
            status = add_class(records, folder, names[i], err);
        free(folder);
    }
    kiln_names_free(names, n);
    if (status >= 0 && records->count == before)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no files in its folders; expected a folder per class", root);
    return status;
}
