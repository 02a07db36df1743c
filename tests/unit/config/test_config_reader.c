/* YAML to nodes: origins, keys, anchors, tags, limits; and back to YAML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "config/yaml/yaml_reader.h"
#include "config/yaml/yaml_writer.h"

static KilnStatus read_text(KilnArena *arena, const char *text, size_t size, KilnConfigNode **ret,
                            KilnError *err)
{
    KilnMaker maker = { .arena = arena,
                        .origin = { .source = "f.yaml" },
                        .layer = KILN_LAYER_FILE };

    return kiln_yaml_read(&maker, text, size, false, ret, err);
}

/* Read and write again; owned by the caller. */
static char *normalized(const char *text)
{
    KilnArena arena = { 0 };
    KilnConfigNode *node = NULL;
    KilnText written = { 0 };
    KilnYamlWriter writer = { .text = &written };
    KilnError err = { 0 };
    char *taken;

    if (read_text(&arena, text, strlen(text), &node, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    if (kiln_write_node(&writer, node, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    kiln_arena_release(&arena);
    taken = kiln_text_take(&written);
    assert_non_null(taken);
    return taken;
}

static void test_values(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "a: yes\nb: 0x1F\nc: 1e-5\nd: ~\n", "a: true\nb: 31\nc: 1.0e-05\nd: null\n" },
        { "a: 'yes'\nb: '0x1F'\nc: '1e-5'\nd: '~'\n", "a: 'yes'\nb: '0x1F'\nc: '1e-5'\nd: '~'\n" },
        { "{1: a, '1.5': b, yes: c, 'false': d}", "1: a\n'1.5': b\ntrue: c\n'false': d\n" },
        { "a: [1, 2.0, true]\nb: [x, 1]\n", "a: [1, 2.0, true]\nb:\n  - x\n  - 1\n" },
        { "a: []\nb: {}\n", "a: []\nb: {}\n" },
        { "a: [[1, 2], {x: 1, y: 2}]", "a:\n  - [1, 2]\n  - x: 1\n    y: 2\n" },
        { "a: \"x\\ny\"\nb: 'it''s'\nc: 'a: b'\nd: ' x'\n",
          "a: \"x\\ny\"\nb: it's\nc: 'a: b'\nd: ' x'\n" },
        { "a: 2024-01-31\nb: 1.2.3\nc: ./x\n", "a: '2024-01-31'\nb: '1.2.3'\nc: ./x\n" },
        { "- '... - [t'\n- '...'\n", "- '... - [t'\n- '...'\n" },
        { "a: '?\?\?'\nb: ${x.y}\n", "a: ???\nb: ${x.y}\n" },
        { "a: !!str 5\nb: !!float 1\nc: !!int '7'\nd: ! 5\n", "a: '5'\nb: 1.0\nc: 7\nd: 5\n" },
        { "x: &x {a: 1}\ny: *x\n", "x:\n  a: 1\ny:\n  a: 1\n" },
        { "d: &d {a: 1, b: 2}\ne: &e {b: 20, c: 3}\nm: {<<: [*d, *e], c: 9}\n",
          "d:\n  a: 1\n  b: 2\ne:\n  b: 20\n  c: 3\nm:\n  b: 2\n  a: 1\n  c: 9\n" },
        { "\xef\xbb\xbf"
          "a: \xc3\xa9\n",
          "a: \xc3\xa9\n" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got = normalized(cases[i].text), *again = normalized(got);

        assert_string_equal(got, cases[i].want);
        assert_string_equal(again, got); /* what is written reads back the same */
        free(got);
        free(again);
    }
}

static void test_errors(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "a: 1\nb: 2\na: 3\n", "f.yaml:3:1: duplicate key 'a'; the first is in line 1" },
        { "a: [1, 2\nb: 3\n", "f.yaml:2:2: not YAML: " },
        { "a: \"\\q\"\n", "f.yaml:1:5: not YAML: " },
        { "a: 1\n---\nb: 1\n", "f.yaml:2:1: a second document" },
        { "a: *x\n", "f.yaml:1:4: *x: there is no anchor &x" },
        { "a: &a [*a]\n", "f.yaml:1:8: *a: there is no anchor &a" },
        { "? [a]\n: 1\n", "f.yaml:1:3: a key must be a plain value" },
        { "1: a\n'1': b\n", "f.yaml:2:1: duplicate key '1'" },
        { "~: 1\n", "f.yaml:1:1: a key must not be null" },
        { "a: !foo 1\n", "f.yaml:1:4: tag !foo is not known" },
        { "a: !!int x\n", "f.yaml:1:4: tag !!int does not fit" },
        { "a: !!set {}\n", "f.yaml:1:4: tag !!set does not fit a mapping" },
        { "a: {<<: 3}\n", "f.yaml:1:5: << takes a mapping" },
        { "a: \"x\\0y\"\n", "f.yaml:1:4: text with a NUL" },
        { "\xc3\xa9: 1\nb: \xff\n", "f.yaml:2:4: byte 9 is not text" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *node = NULL;
        KilnError err = { 0 };
        KilnStatus status = read_text(&arena, cases[i].text, strlen(cases[i].text), &node, &err);

        if (status >= 0 || strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].text, err.text, cases[i].want);
        assert_null(node);
        kiln_arena_release(&arena);
    }
}

static void test_origins(void **unused)
{
    static const char text[] = "a: 1\n\xc3\xa9: {b: [x, 2]}\nc: |\n  text\n";
    KilnArena arena = { 0 };
    KilnConfigNode *node = NULL;
    const KilnConfigNode *item;

    (void)unused;
    assert_int_equal(read_text(&arena, text, strlen(text), &node, NULL), KILN_OK);
    item = kiln_node_find(node, "\xc3\xa9.b[1]");
    assert_non_null(item);
    assert_int_equal(item->origin.line, 2);
    assert_int_equal(item->origin.column, 12); /* characters, not bytes */
    assert_int_equal(node->entries[2].key_origin.line, 3);
    assert_int_equal(node->entries[2].value->origin.column, 4);
    assert_ptr_equal(kiln_node_find(node, "\xc3\xa9.b.1"), item);
    assert_null(kiln_node_find(node, "\xc3\xa9.b[2]"));
    assert_null(kiln_node_find(node, "a.x"));
    kiln_arena_release(&arena);
}

/* Text of a limit's test: `open` many times, then `close`. */
static char *repeated(const char *before, const char *part, size_t n)
{
    KilnText text = { 0 };
    char *taken;

    kiln_text_append(&text, before);
    for (size_t i = 0; i < n; i++)
        kiln_text_append(&text, part);
    taken = kiln_text_take(&text);
    assert_non_null(taken);
    return taken;
}

static void test_limits(void **unused)
{
    static const char bomb[] = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
                               "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                               "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                               "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                               "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
                               "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    char *deep = repeated("a: ", "[", 10000), *large = repeated("a: ", "x", KILN_YAML_BYTES);
    struct {
        const char *text, *want;
    } cases[] = { { deep, "nested deeper" },
                  { large, "larger than" },
                  { bomb, "more than 200000" } };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *node = NULL;
        KilnError err = { 0 };

        assert_int_equal(read_text(&arena, cases[i].text, strlen(cases[i].text), &node, &err),
                         KILN_E_RANGE);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s", err.text);
        kiln_arena_release(&arena);
    }
    free(deep);
    free(large);
}

static void test_empty(void **unused)
{
    static const char *const texts[] = { "", "# nothing\n" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(texts); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *node = NULL;

        assert_int_equal(read_text(&arena, texts[i], strlen(texts[i]), &node, NULL), KILN_OK);
        assert_null(node);
        assert_int_equal(kiln_node_parse(&arena, texts[i], "default", &node, NULL), KILN_OK);
        assert_int_equal(node->scalar, KILN_SCALAR_NULL);
        assert_int_equal(node->origin.line, 0);
        kiln_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_origins), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
