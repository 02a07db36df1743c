#include "tests/support/run_files.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/support/run_fixture.h"

char *read_work(const char *path, size_t *ret_size)
{
    char full[640], *text = NULL;
    KilnError err = { 0 };

    snprintf(full, sizeof(full), "%s/%s", work, path);
    if (kiln_file_read(full, 1 << 26, &text, ret_size, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

bool exists(const char *path)
{
    char full[640];

    snprintf(full, sizeof(full), "%s/%s", work, path);
    return access(full, F_OK) == 0;
}

void assert_same_file(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = read_work(a, &n), *y = read_work(b, &m);

    size_t at = 0;
    while (at < n && at < m && x[at] == y[at])
        at++;
    if (n != m || at < n)
        fail_msg("%s and %s differ at byte %zu:\n%.99s\n%.99s", a, b, at, x + at, y + at);
    free(x);
    free(y);
}

void assert_same_rows(const char *a, const char *b)
{
    enum { WALL_TIME = 6 };
    const char *const names[] = { a, b };
    char *texts[2];

    for (int i = 0; i < 2; i++) {
        char path[256];
        size_t size = 0;
        int cell = 1;

        snprintf(path, sizeof(path), "%s/metrics.csv", names[i]);
        texts[i] = read_work(path, &size);
        char *to = texts[i];
        for (const char *p = texts[i]; *p != '\0'; p++) {
            cell = *p == '\n' ? 1 : cell + (*p == ',');
            if (cell != WALL_TIME)
                *to++ = *p;
        }
        *to = '\0';
    }
    assert_non_null(strchr(texts[0], '\n'));
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

json_t *summary_of(const char *name)
{
    char path[256];
    size_t size;

    snprintf(path, sizeof(path), "%s/summary.json", name);
    char *text = read_work(path, &size);
    json_t *summary = json_loads(text, 0, NULL);
    assert_non_null(summary);
    free(text);
    return summary;
}
