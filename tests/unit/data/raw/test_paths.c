/* Files of a user's folder as raw samples. */
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "data/raw/raw_input.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

static const char *const png[] = { ".png", NULL };
static const KilnRawField image[] = {
    { .name = "image", .types = KILN_RAW_PATH, .help = "a picture", .endings = png },
};

static void make_tree(const char *const *files)
{
    assert_int_equal(kiln_path_remove(fixture_path("tree"), NULL), KILN_OK);
    for (; *files != NULL; files++) {
        char name[64];

        snprintf(name, sizeof(name), "tree/%s", *files);
        fixture_put(name, "", 0);
    }
}

static KilnStatus open_tree(const char *path, KilnRawInput *ret, KilnError *err)
{
    return kiln_raw_input_open(fixture_path(path), image, 1, NULL, ret, err);
}

static void test_find(void **unused)
{
    static const char *const files[] = {
        "b/c/2.png", "b/1.PNG", "a.png", "z.txt", ".d/3.png", NULL
    };
    static const char *const want[] = { "tree/a.png", "tree/b/1.PNG", "tree/b/c/2.png" };
    KilnRawInput input = { 0 };
    KilnRawSample raw;

    (void)unused;
    make_tree(files);
    assert_int_equal(symlink(".", fixture_path("tree/b/loop")), 0);
    assert_int_equal(open_tree("tree", &input, NULL), KILN_OK);
    assert_int_equal(input.set.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(input.set.name(input.set.ctx, i), fixture_path(want[i]));
        assert_int_equal(input.set.get(input.set.ctx, i, &raw, NULL), KILN_OK);
        assert_int_equal(raw.n_values, 1);
        assert_int_equal(raw.values[0].type, KILN_RAW_PATH);
        assert_string_equal(raw.values[0].text, fixture_path(want[i]));
        input.set.done(input.set.ctx, &raw);
    }
    assert_int_equal(input.n_left_out, 2);
    assert_string_equal(input.left_out[0].what, "links to folders");
    assert_string_equal(input.left_out[0].reason, "links are not followed");
    assert_string_equal(input.left_out[1].what, ".txt files");
    assert_string_equal(input.left_out[1].example, fixture_path("tree/z.txt"));
    assert_string_equal(input.left_out[1].reason, "only .png files are read");
    kiln_raw_input_release(&input);
    /* One file, whatever it is called. */
    assert_int_equal(open_tree("tree/z.txt", &input, NULL), KILN_OK);
    assert_int_equal(input.set.count, 1);
    assert_string_equal(input.set.name(input.set.ctx, 0), fixture_path("tree/z.txt"));
    kiln_raw_input_release(&input);
}

static bool stop(void *ctx, const char *what, int64_t done, int64_t total)
{
    (void)done;
    (void)total;
    *(const char **)ctx = what;
    return true;
}

static void test_errors(void **unused)
{
    static const char *const none[] = { "a/b/c.txt", NULL };
    const char *what = NULL;
    const KilnPoll poll = { stop, &what };
    KilnRawInput input = { 0 };
    KilnError err = { 0 };

    (void)unused;
    make_tree(none);
    assert_int_equal(open_tree("tree", &input, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "tree: no PNG file in this folder or below it"));
    assert_int_equal(open_tree("nowhere", &input, &err), KILN_E_IO);
    assert_int_equal(kiln_raw_input_open(fixture_path("tree"), image, 1, &poll, &input, &err),
                     KILN_E_INTERRUPTED);
    assert_string_equal(what, "finding files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
