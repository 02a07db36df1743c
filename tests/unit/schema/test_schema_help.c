/* Options tables as text. */
#include <stdlib.h>
#include <string.h>

#include "schema/options_help.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

/* The table on a page of that width; owned by the caller. */
static char *table_text(const KilnHelpTable *table, int width)
{
    KilnPage page = { .width = width };

    kiln_help_table(&page, table);
    char *text = kiln_text_take(&page.text);
    assert_non_null(text);
    return text;
}

static void check_table(const KilnHelpTable *table, int width, const char *want)
{
    char *text = table_text(table, width);

    assert_string_equal(text, want);
    free(text);
}

static void test_aligned(void **unused)
{
    KilnHelpTable table = { .fields = toy_wide_fields, .prefix = "model.", .indent = 2 };

    (void)unused;
    check_table(&table, 100,
                "  model.width  int 1..100  required  features\n"
                "  model.name   text        wide      a name\n");
    check_table(&table, 40,
                "  model.width  int 1..100, required\n"
                "      features\n"
                "  model.name  text, wide\n"
                "      a name\n");
}

static void test_types(void **unused)
{
    static const char *const want[] = {
        "flag",
        "bool",
        "count",
        "int -5..1000",
        "float >= 0",
        "text or null",
        "path",
        "path or null",
        "min|max",
        "list of int 0..100",
        "list of float -1..1",
        "list of text",
        "[1, 2]",
        "list of transform",
        "map of callback",
        "model or null",
    };
    KilnHelpTable all = { .fields = toy_all_fields, .prefix = "" };
    KilnHelpTable task = { .fields = toy_task_fields, .prefix = "" }, none = { .prefix = "" };
    char *one = table_text(&all, 100), *two = table_text(&task, 100);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(want); i++)
        if (strstr(one, want[i]) == NULL && strstr(two, want[i]) == NULL)
            fail_msg("no \"%s\" in\n%s%s", want[i], one, two);
    free(one);
    free(two);
    check_table(&none, 100, "");
}

typedef struct Limits {
    double timeout;
    int64_t memory;
} Limits;

typedef struct Job {
    Limits limits;
    int64_t n_jobs;
} Job;

static const KilnField limits_fields[] = {
    KILN_FIELD_DURATION(Limits, timeout, "1h", 1.0, 86400.0, "longest time"),
    KILN_FIELD_SIZE(Limits, memory, "64MiB", 0, 1e9, "most memory"),
    KILN_FIELD_END,
};

static const KilnField job_fields[] = {
    { .name = "limits",
      .type = KILN_TYPE_STRUCT,
      KILN_FIELDS(limits_fields),
      .help = "what is allowed" },
    KILN_FIELD_I64(Job, n_jobs, "1", 1, 64, "jobs at once"),
    { .name = "jobs", .type = KILN_TYPE_I64, .renamed = "n_jobs" },
    { .name = "processes", .type = KILN_TYPE_I64, .renamed = "n_jobs" },
    KILN_FIELD_END,
};

static void test_structs_and_former_names(void **unused)
{
    KilnHelpTable table = { .fields = job_fields, .prefix = "" };

    (void)unused;
    check_table(&table, 100,
                "limits          mapping                     what is allowed\n"
                "limits.timeout  duration 1s..86400s  1h     longest time\n"
                "limits.memory   size 0..1e9          64MiB  most memory\n"
                "n_jobs          int 1..64            1      jobs at once (formerly jobs, "
                "processes)\n");
}

static void note(void *ctx, const KilnField *field, const char *path, KilnText *ret)
{
    if (strcmp(field->name, "name") == 0)
        kiln_text_printf(ret, "%s of %s", (const char *)ctx, path);
}

static void test_note(void **unused)
{
    static char what[] = "note";
    KilnHelpTable table = { .fields = toy_wide_fields, .prefix = "m.", .note = note, .ctx = what };

    (void)unused;
    check_table(&table, 100,
                "m.width  int 1..100  required  features\n"
                "m.name   text        wide      a name\n"
                "                               note of m.name\n");
}

/* In any width, no word is lost and no line is longer than its longest word requires. */
static void test_wraps_without_cutting(void **unused)
{
    static const char words[] = "one two three|four|five six, seven eight";

    (void)unused;
    for (int width = 8; width < 60; width++) {
        KilnPage page = { .width = width };
        size_t letters = 0, line = 0;

        kiln_page_tab(&page, 2);
        kiln_page_words(&page, 2, words);
        kiln_page_end(&page);
        for (const char *p = page.text.data; *p != '\0'; p++) {
            line = *p == '\n' ? 0 : line + 1;
            letters += strchr(" \n", *p) == NULL;
            assert_true(line <= (size_t)width);
        }
        assert_int_equal(letters, strlen("onetwothree|four|fivesix,seveneight"));
        kiln_text_release(&page.text);
    }
}

static void test_headings_are_bold_with_colours(void **unused)
{
    KilnPage page = { .width = 40, .colour = true };

    (void)unused;
    kiln_page_heading(&page, "first %d", 1);
    kiln_page_heading(&page, "second");
    assert_string_equal(page.text.data, "\033[1mfirst 1\033[0m\n\n\033[1msecond\033[0m\n");
    kiln_text_release(&page.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_structs_and_former_names),
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_wraps_without_cutting),
        cmocka_unit_test(test_headings_are_bold_with_colours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
