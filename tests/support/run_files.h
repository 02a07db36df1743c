/* The files of a run in the scratch folder, read and compared. */
#ifndef KILN_TESTS_SUPPORT_RUN_FILES_H
#define KILN_TESTS_SUPPORT_RUN_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The bytes of work/PATH, owned by the caller. */
char *read_work(const char *path, size_t *ret_size);

bool exists(const char *path);

void assert_same_file(const char *a, const char *b);

/* metrics.csv of two runs: the same but for wall times, the sixth column. */
void assert_same_rows(const char *a, const char *b);

/* summary.json of work/NAME; owned by the caller. */
json_t *summary_of(const char *name);

#endif
