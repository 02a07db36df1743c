#include "tests/support/compose_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "tests/support/cmocka.h"

char *folder_make(void)
{
    char *folder = kiln_strdup("/tmp/kiln-test-XXXXXX");

    assert_non_null(folder);
    assert_non_null(mkdtemp(folder));
    return folder;
}

void folder_remove(char *folder)
{
    assert_int_equal(kiln_path_remove(folder, NULL), KILN_OK);
    free(folder);
}

void file_put(const char *folder, const char *name, const char *text)
{
    char *path = kiln_path_join(folder, name);

    assert_non_null(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    free(path);
}

KilnStatus compose_yaml(const char *yaml, const char *const *overrides,
                        const KilnRegistry *registry, const KilnSection *sections, KilnConfig **ret,
                        KilnErrors *errors)
{
    char *folder = folder_make();
    KilnComposeRequest request = {
        .config_path = folder, .overrides = overrides, .registry = registry, .sections = sections
    };

    file_put(folder, "config.yaml", yaml);
    *ret = NULL;
    KilnStatus status = kiln_compose(&request, ret, errors);
    folder_remove(folder);
    return status;
}

char *errors_join(const KilnErrors *errors)
{
    KilnText text = { 0 };

    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        kiln_text_printf(&text, "%s\n", kiln_errors_text(errors, i));
    char *joined = kiln_text_take(&text);
    assert_non_null(joined);
    return joined;
}
