/* Finds the files of python/kiln_host in the table that the build makes of them. */
#include "python/modules.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "config/defaults/shipped.h"

extern const KilnShippedFile kiln_python_files[];
extern const size_t kiln_python_files_count;

static const char *const names[] = { "channel", "values",  "describe", "raw",
                                     "data",    "objects", "serve" };

static const char *text_of(const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "%s.py", name);
    for (size_t i = 0; i < kiln_python_files_count; i++)
        if (strcmp(kiln_python_files[i].path, path) == 0)
            return kiln_python_files[i].text;
    return "";
}

const char *kiln_python_boot(void)
{
    return text_of("boot");
}

json_t *kiln_python_modules(const char *folder)
{
    json_t *modules = json_array();

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        kiln_json_add(&modules, json_pack("[s, s]", names[i], text_of(names[i])));
    return modules != NULL
               ? json_pack("{s:o?, s:o}", "folder", folder != NULL ? kiln_json_text(folder) : NULL,
                           "modules", modules)
               : NULL;
}
