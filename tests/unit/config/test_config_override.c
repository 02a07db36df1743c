/* The grammar of overrides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "config/override/override.h"
#include "config/yaml/yaml_writer.h"

/* Read an argument; what is wrong with its value is an error. */
static KilnStatus parse(KilnArena *arena, const char *text, size_t number, KilnOverride *ret,
                        KilnError *err)
{
    KilnOverride override = { 0 };
    KilnStatus status = kiln_override_read(arena, text, number, &override, err);

    if (status >= 0 && override.problem != NULL) {
        *err = *override.problem;
        return err->status;
    }
    if (status >= 0)
        *ret = override;
    return status;
}

static void check_value(const char *text, const char *want)
{
    KilnArena arena = { 0 };
    KilnOverride override = { 0 };
    KilnError err = { 0 };
    KilnText yaml = { 0 };
    KilnYamlWriter writer = { .text = &yaml };

    if (parse(&arena, text, 1, &override, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(kiln_write_node(&writer, override.value, &err), KILN_OK);
    if (strcmp(yaml.data, want) != 0)
        fail_msg("%s: got '%s', want '%s'", text, yaml.data, want);
    kiln_text_release(&yaml);
    kiln_arena_release(&arena);
}

static void test_values(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "a=5", "5\n" },
        { "a= 5 ", "5\n" },
        { "a=", "''\n" },
        { "a=1 apple", "1 apple\n" },
        { "a=/usr/lib/x.so", "/usr/lib/x.so\n" },
        { "a=C:\\temp\\x", "'C:\\temp\\x'\n" },
        { "a=a:b", "a:b\n" },
        { "a='hello, world'", "hello, world\n" },
        { "a=\"it's\"", "it's\n" },
        { "a='it\\'s'", "it's\n" },
        { "a='a\\\\'", "'a\\'\n" },
        { "a='a\\nb'", "'a\\nb'\n" },
        { "a=\"null\"", "'null'\n" },
        { "a=null", "null\n" },
        { "a=k\\=v", "k=v\n" },
        { "a=\\{b\\}", "'{b}'\n" },
        { "a=x\\ ", "'x '\n" },
        { "a=nan", ".nan\n" },
        { "a=[1,2.5,x,true,null,'5']", "- 1\n- 2.5\n- x\n- true\n- null\n- '5'\n" },
        { "a=[ [1, 2] , [] ]", "- [1, 2]\n- []\n" },
        { "a={ k : v w , n:{x/y.z:1}, 3: y}", "k: v w\nn:\n  x/y.z: 1\n3: y\n" },
        { "a={k:1,k:2}", "k: 2\n" },
        { "a=x-${b.c}", "x-${b.c}\n" },
        { "a=${oc.env:X,${y}}", "${oc.env:X,${y}}\n" },
        { "a=int(3.9)", "3\n" },
        { "a=int('12')", "12\n" },
        { "a=float(3)", "3.0\n" },
        { "a=str(TRUE)", "'true'\n" },
        { "a=str({k:1})", "k: '1'\n" },
        { "a=bool (0)", "false\n" },
        { "a=bool(TrUe)", "true\n" },
        { "a=sort([3,1,2])", "[1, 2, 3]\n" },
        { "a=sort(list=[b,a],reverse=true)", "- b\n- a\n" },
        { "a=[int(1.5),[str(2)]]", "- 1\n- - '2'\n" },
        { "a=\xc3\xa9", "\xc3\xa9\n" },
        /* Odd ones, as Hydra 1.3 reads them. */
        { "a=01", "'01'\n" },
        { "a=1__0", "'1__0'\n" },
        { "a=1_0", "10\n" },
        { "a=+4", "4\n" },
        { "a=1.", "1.0\n" },
        { "a=-INF", "-.inf\n" },
        { "a=nUlL", "null\n" },
        { "a=..", "'..'\n" },
        { "a=:", "':'\n" },
        { "a=k:k:", "'k:k:'\n" },
        { "a=k: v", "'k: v'\n" },
        { "a=a/b\\c|d@e*%?", "'a/b\\c|d@e*%?'\n" },
        { "a=$x", "$x\n" },
        { "a=\\", "'\\'\n" },
        { "a=\\\\", "'\\'\n" },
        { "a=\\x", "'\\x'\n" },
        { "a=\\[\\(\\)\\]", "'[()]'\n" },
        { "a=true1.", "true1.\n" },
        { "a=1 2", "'1 2'\n" },
        { "a=[x y , ' z']", "- x y\n- ' z'\n" },
        { "a={a: b, c:d}", "a: b\nc: d\n" },
        { "a={1.50:x,TRUE:y,null1:z}", "1.50: x\ntrue: y\nnull1: z\n" },
        { "a='a\\\\\\'b'", "'a\\''b'\n" },
        { "a=bool(null)", "false\n" },
        { "a=sort(x)", "x\n" },
        { "a=shuffle(x)", "- x\n" },
        { "a=sort([b,${x},a],reverse=true)", "- b\n- a\n- ${x}\n" },
        { "a=tags.0", "tags.0\n" },
        /* Of Hydra 1.4. */
        { "a=json_str({a:[1,'x\"y',1e-5,inf],1:null,b:true})",
          "'{\"a\": [1, \"x\\\"y\", 1e-05, Infinity], \"1\": null, \"b\": true}'\n" },
        { "a=json_str(\xc3\xa9\xf0\x9f\x98\x80)", "'\"\\u00e9\\ud83d\\ude00\"'\n" },
        { "a=json_str([])", "'[]'\n" },
        { "a=extend_list(1,[2])", "- 1\n- [2]\n" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        check_value(cases[i].text, cases[i].want);
}

static void test_keys(void **unused)
{
    static const struct {
        const char *text;
        KilnOverrideKind kind;
        const char *key, *package;
        bool value, sweep;
    } cases[] = {
        { "a.b.0.c=1", KILN_OVERRIDE_SET, "a.b.0.c", NULL, true, false },
        { "+a-b=1", KILN_OVERRIDE_ADD, "a-b", NULL, true, false },
        { "++$a=1", KILN_OVERRIDE_FORCE, "$a", NULL, true, false },
        { "~a.b", KILN_OVERRIDE_DELETE, "a.b", NULL, false, false },
        { "~a=", KILN_OVERRIDE_DELETE, "a", NULL, true, false },
        { "model/head@x.y=z", KILN_OVERRIDE_SET, "model/head", "x.y", true, false },
        { "db@_global_=z", KILN_OVERRIDE_SET, "db", "_global_", true, false },
        { "hydra.run.dir=x", KILN_OVERRIDE_SET, "kiln.run.dir", NULL, true, false },
        { "hydra/launcher=x", KILN_OVERRIDE_SET, "kiln/launcher", NULL, true, false },
        { "hydrant=x", KILN_OVERRIDE_SET, "hydrant", NULL, true, false },
        { "a=1,2", KILN_OVERRIDE_SET, "a", NULL, true, true },
        { "a=choice(1,[2])", KILN_OVERRIDE_SET, "a", NULL, true, true },
        { "a=range(3)", KILN_OVERRIDE_SET, "a", NULL, true, true },
        { "a=interval(0,1)", KILN_OVERRIDE_SET, "a", NULL, true, true },
        { "a=int(1,2)", KILN_OVERRIDE_SET, "a", NULL, true, true },
        { "a=shuffle(range(3))", KILN_OVERRIDE_SET, "a", NULL, true, true },
        { "a='1,2'", KILN_OVERRIDE_SET, "a", NULL, true, false },
        { "a.-1.-20=x", KILN_OVERRIDE_SET, "a.-1.-20", NULL, true, false },
        { "a+=x", KILN_OVERRIDE_APPEND, "a", NULL, true, false },
        { "a.0+=x,y", KILN_OVERRIDE_APPEND, "a.0", NULL, true, true },
        { "a-b-=x", KILN_OVERRIDE_REMOVE, "a-b", NULL, true, false },
        { "hydra.a:={}", KILN_OVERRIDE_REPLACE, "kiln.a", NULL, true, false },
        { "a=extend_list(x)", KILN_OVERRIDE_APPEND, "a", NULL, true, false },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnOverride got = { 0 };
        KilnError err = { 0 };

        if (parse(&arena, cases[i].text, 1, &got, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        if (got.kind != cases[i].kind || strcmp(got.key, cases[i].key) != 0 ||
            (got.package == NULL) != (cases[i].package == NULL) ||
            (got.package != NULL && strcmp(got.package, cases[i].package) != 0) ||
            (got.value != NULL) != cases[i].value || (got.sweep != NULL) != cases[i].sweep)
            fail_msg("%s: kind %d, key %s, package %s, sweep %d", cases[i].text, (int)got.kind,
                     got.key, got.package != NULL ? got.package : "-", got.sweep != NULL);
        kiln_arena_release(&arena);
    }
}

static void test_errors(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "argument 7 ``: expected key=value" },
        { "+", "argument 7 `+`: expected key=value" },
        { "a", "'=' is missing" },
        { "=3", "no key before '='" },
        { "a =1", "column 2: a blank in the key" },
        { "a[0]=1", "column 2: '[' in a key; write an index with a dot" },
        { "/db=x", "write a group without '/' in front: db=x" },
        { "a.-x=1", "column 2: '.' is not allowed" },
        { "a=[1", "at the end: ']' is missing" },
        { "a=[1,]", "column 6: a value is missing here" },
        { "a=[1 2", "']' is missing" },
        { "a=1]", "column 4: ']' closes nothing" },
        { "a={k}", "column 5: expected ':' after the key 'k'" },
        { "a={'k':1}", "column 4: keys in {...} are written without quotes" },
        { "a={null:1}", "a key must not be null" },
        { "a='abc", "column 3: the quote ' is not closed" },
        { "a='x'y", "column 6: 'y' after quoted text" },
        { "a=x'y'", "column 4: a quote in the middle of a value" },
        { "a=k=v", "column 4: '=' in a value must be quoted" },
        { "a=x;y", "column 4: ';' is not allowed in an unquoted value" },
        { "a=${b", "column 3: '${' is not closed by '}'" },
        { "a=f(x", "')' is missing" },
        { "a=sotr([1])", "there is no function 'sotr' (did you mean sort?)" },
        { "a=int(abc)", "int(): 'abc' is not a valid int" },
        { "a=int()", "column 3: int(): it needs a value" },
        { "a=sort([1,a])", "only numbers, or only text" },
        { "a=${}", "column 3: ${} names nothing" },
        { "a=[", "a value is missing here" },
        { "a={a:1", "expected ',' or '}'" },
        { "a=(1)", "column 3: '(' is not allowed in an unquoted value" },
        { "a=x)", "column 4: ')' closes nothing" },
        { "a= ,1", "column 4: a value is missing here" },
        { "a=#x", "column 3: '#' is not allowed" },
        { "a='x' 'y'", "column 7: ''' after quoted text" },
        { "a@b@c=1", "column 4: '@' is not allowed in a key" },
        { "a/b.c=1", "column 4: '.' is not allowed in a key" },
        { "a.-x=1", "column 2: '.' is not allowed in a key" },
        { "-a=1", "column 1: '-' is not allowed in a key" },
        { "+a+=1", "column 3: '+' is not allowed in a key" },
        { "+a=extend_list(1)", "column 4: extend_list() appends to the list: write" },
        { "a=[extend_list(1)]", "extend_list() must be the whole value" },
        { "a=extend_list()", "column 3: extend_list(): it needs values" },
        { "a=json_str(range(3))", "a range can be cast to int and float only" },
        { "a=\xff", "argument 7: the text is not UTF-8" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnOverride got = { .key = "untouched" };
        KilnError err = { 0 };
        KilnStatus status = parse(&arena, cases[i].text, 7, &got, &err);

        if (status != KILN_E_SYNTAX || strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s: status %d '%s', want '%s'", cases[i].text, status, err.text,
                     cases[i].want);
        assert_string_equal(got.key, "untouched");
        kiln_arena_release(&arena);
    }
}

/* Nodes and errors know where in the argument they stand. */
static void test_columns(void **unused)
{
    KilnArena arena = { 0 };
    KilnOverride got = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(parse(&arena, "+a.b= [x, {k: y}]", 3, &got, &err), KILN_OK);
    assert_string_equal(got.value->origin.source, "argument 3 `+a.b= [x, {k: y}]`");
    assert_int_equal(got.value->origin.line, 0);
    assert_int_equal(got.value->origin.column, 7);
    assert_int_equal(got.value->entries[0].value->origin.column, 8);
    assert_int_equal(got.value->entries[1].value->entries[0].value->origin.column, 15);
    assert_int_equal(parse(&arena, "a=[1,x;]", 3, &got, &err), KILN_E_SYNTAX);
    assert_string_equal(err.origin.source, "argument 3 `a=[1,x;]`");
    assert_int_equal(err.origin.column, 7);
    kiln_arena_release(&arena);
}

static void test_depth(void **unused)
{
    char text[2100] = "a=";
    KilnArena arena = { 0 };
    KilnOverride got = { 0 };
    KilnError err = { 0 };

    (void)unused;
    memset(text + 2, '[', 2000);
    assert_int_equal(parse(&arena, text, 1, &got, &err), KILN_E_SYNTAX);
    assert_non_null(strstr(err.text, "nested deeper"));
    assert_true(strlen(err.text) < 400); /* the argument is not repeated in full */
    kiln_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_keys),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_columns), cmocka_unit_test(test_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
