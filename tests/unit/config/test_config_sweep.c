/* Splits sweep arguments into axes. Expected values are those of Hydra 1.3. */
#include <stdlib.h>
#include <string.h>

#include "config/composed.h"
#include "config/sweep/sweep_arguments.h"
#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const TreeFile files[] = {
    { "config.yaml", "defaults: [net: tiny, _self_]\nlr: 1\nwd: 2\nname: x\n" },
    { "params.yaml",
      "hydra:\n  sweeper:\n    params:\n      lr: 0.1,0.2\n      +extra: choice(p,q)\n"
      "      wd: 7\n      name: ${word}\n      b: true\n      none: null\n"
      "lr: 0.5\nword: a,b\n" },
    { "bad_params.yaml", "kiln: {sweeper: {params: {lr: [1, 2], wd: '1,'}}}\n" },
    { "list_params.yaml", "kiln: {sweeper: {params: [a]}}\n" },
    { "must.yaml", "defaults:\n  - net: ?\?\?\n" },
    { "search/tuned.yaml", "# @package _global_\nkiln: {sweeper: {params: {wd: 'range(2)'}}}\n" },
    { "net/tiny.yaml", "depth: 1\n" },
    { "net/large.yaml", "depth: 9\n" },
    { "net/large_bn.yaml", "depth: 9\n" },
    { "more/.keep", "" },
    { NULL, NULL },
};

static Tree tree;
static const KilnComposeHooks *hooks;

static int make_tree(void **unused)
{
    (void)unused;
    tree = tree_make(files);
    return 0;
}

static int remove_tree(void **unused)
{
    (void)unused;
    tree_remove(&tree);
    return 0;
}

static bool is_zipped(const KilnSpace *space, size_t axis)
{
    size_t n = 0;

    for (size_t i = 0; i < space->count; i++)
        n += space->axes[i]->leader == space->axes[axis]->leader;
    return n > 1;
}

/* "range 0..2 ", or "log float 0.1..1 tags x,log ". */
static void append_numbers(KilnText *text, const KilnAxis *axis)
{
    const bool interval = axis->kind == KILN_AXIS_FLOAT || axis->kind == KILN_AXIS_INT;

    if (interval)
        kiln_text_printf(text, "%s %s%s %g..%g", axis->key, axis->log ? "log " : "",
                         axis->kind == KILN_AXIS_INT ? "int" : "float", axis->low, axis->high);
    if (axis->step > 0.0)
        kiln_text_printf(text, " step %g", axis->step);
    for (size_t i = 0; interval && axis->tags != NULL && axis->tags[i] != NULL; i++)
        kiln_text_printf(text, " #%s", axis->tags[i]);
}

/* " when model 01": active for the second of its values. */
static void append_condition(KilnText *text, const KilnSpace *space, const KilnAxis *axis)
{
    const KilnAxis *parent = space->axes[axis->parent];

    if (axis->active_for == NULL)
        return;
    kiln_text_printf(text, " when %s ", parent->key);
    for (size_t i = 0; i < parent->count; i++)
        kiln_text_char(text, axis->active_for[i] ? '1' : '0');
}

/* "a=1|a=2; b=3; zip c=1|c=2 own: kiln.x=1", or the messages. */
static char *split(const char *config_name, const char *const *arguments)
{
    KilnComposeRequest request = { .config_path = tree.dir,
                                   .config_name = config_name,
                                   .overrides = arguments };
    KilnSweepArguments got = { 0 };
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    KilnText text = { 0 };
    KilnStatus status;
    char *messages;

    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    status = kiln_config_compose_sweep(&request, hooks, &config, errors);
    if (status >= 0)
        status = kiln_sweep_arguments(&request, hooks, config, kiln_config_arena(config), &got,
                                      errors);
    for (size_t i = 0; status >= 0 && i < got.space.count; i++) {
        const KilnAxis *axis = got.space.axes[i];

        kiln_text_printf(&text, "%s%s", i > 0 ? "; " : "", is_zipped(&got.space, i) ? "zip " : "");
        append_numbers(&text, axis);
        if (axis->count == 0 && axis->kind == KILN_AXIS_CHOICE)
            kiln_text_printf(&text, "%s without a value", axis->key);
        for (size_t j = 0; j < axis->count; j++)
            kiln_text_printf(&text, "%s%s", j > 0 ? "|" : "", axis->overrides[j]);
        for (size_t j = 0; axis->weights != NULL && j < axis->count; j++)
            kiln_text_printf(&text, "%s %g", j > 0 ? "" : " weights", axis->weights[j]);
        append_condition(&text, &got.space, axis);
    }
    for (size_t i = 0; status >= 0 && got.own[i] != NULL; i++)
        kiln_text_printf(&text, " own: %s", got.own[i]);
    messages = tree_messages(&tree, errors);
    kiln_text_append(&text, messages);
    free(messages);
    kiln_errors_free(errors);
    kiln_config_free(config);
    return kiln_text_take(&text);
}

static void check(const char *config_name, const char *const *arguments, const char *want)
{
    char *got = split(config_name, arguments);

    if (strcmp(got, want) != 0)
        fail_msg("%s %s...: got '%s', want '%s'", config_name,
                 arguments[0] != NULL ? arguments[0] : "", got, want);
    free(got);
}

static void check_says(const char *config_name, const char *const *arguments, const char *want)
{
    char *got = split(config_name, arguments);

    if (strstr(got, want) == NULL)
        fail_msg("%s %s: got '%s', want '...%s...'", config_name,
                 arguments[0] != NULL ? arguments[0] : "", got, want);
    free(got);
}

/* One argument and the axis that it makes. */
static void test_values(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "lr=1,2", "lr=1|lr=2" },
        { "lr= 1 , 2", "lr=1|lr=2" },
        { "lr=5", "lr=5" },
        { "lr=", "lr=" },
        { "~lr", "~lr" },
        { "~lr=1", "~lr=1" },
        { "+a.b=1,2", "+a.b=1|+a.b=2" },
        { "++a=1,2", "++a=1|++a=2" },
        { "net@other=tiny,large", "net@other=tiny|net@other=large" },
        { "lr=1e-5,1_000,0.10,5e3,.5", "lr=1e-05|lr=1000|lr=0.1|lr=5000.0|lr=0.5" },
        { "lr=inf,-inf,nan", "lr=inf|lr=-inf|lr=nan" },
        { "lr=True,FALSE,nULL,???", "lr=True|lr=False|lr=null|lr=?\?\?" },
        { "lr=010,0x1F,-0", "lr=010|lr=0x1F|lr=0" },
        { "name=a b,c", "name=a\\ b|name=c" },
        { "name=k:v,a\\,b", "name=k\\:v|name=a\\,b" },
        { "name=${nope},x-${y}", "name=$\\{nope\\}|name=x-$\\{y\\}" },
        { "name='it\\'s',\"q\\\"q\"", "name='it\\'s'|name=\"q\\\"q\"" },
        { "name='a\\\\',\"a\\b\"", "name='a\\\\'|name=\"a\\b\"" },
        { "name='x\\\\\\'y',''", "name='x\\\\\\'y'|name=''" },
        /* Hydra writes these so that it can't read them. */
        { "name=${a:'b'},x", "name=\"${a:'b'}\"|name=x" },
        { "name=choice(\"it's\",';',str(['']))", "name=\"it's\"|name=';'|name=['']" },
        { "lr=[1,2],[3,[4]],[]", "lr=[1,2]|lr=[3,[4]]|lr=[]" },
        { "lr=['a b',c],[\"d,e\"]", "lr=['a b',c]|lr=[\"d,e\"]" },
        { "lr={a: 1, b: [x y,'z']},{true:1,2.50:x,a-b:{}}",
          "lr={a:1,b:[x\\ y,'z']}|lr={True:1,2.5:x,a-b:{}}" },
        { "lr=choice(1,'a b',[c])", "lr=1|lr=a\\ b|lr=[c]" },
        { "lr=choice(int(1,2))", "lr=1|lr=2" },
        { "lr=range(3)", "lr=0|lr=1|lr=2" },
        { "lr=range(2,5)", "lr=2|lr=3|lr=4" },
        { "lr=range(stop=7,start=1,step=3)", "lr=1|lr=4" },
        { "lr=range(10,0,-4)", "lr=10|lr=6|lr=2" },
        { "lr=range(5,5)", "lr without a value" },
        { "lr=range(1,2.5)", "lr=1.0|lr=2.0" },
        { "lr=range(0,0.5,0.1)", "lr=0.0|lr=0.1|lr=0.2|lr=0.3|lr=0.4" },
        { "lr=range(1e-5,4e-5,1e-5)", "lr=1e-05|lr=2e-05|lr=3e-05|lr=4e-05" },
        { "lr=range(0.3,0,-0.1)", "lr=0.3|lr=0.19999999999999998|lr=0.09999999999999998" },
        { "lr=range(1e20,3e20,1e20)", "lr=1e+20|lr=2e+20" },
        { "lr=sort(range(6,0,-2))", "lr=2|lr=4|lr=6" },
        { "lr=sort(range(0,7,2),reverse=true)", "lr=6|lr=4|lr=2|lr=0" },
        { "lr=sort(3,1,2,reverse=true)", "lr=3|lr=2|lr=1" },
        { "name=sort(choice(c,'a',b))", "name=a|name=b|name=c" },
        { "lr=sort(sweep=choice(2,1))", "lr=1|lr=2" },
        { "lr=int(1.9,2.1)", "lr=1|lr=2" },
        { "lr=int(range(0.0,3.0))", "lr=0|lr=1|lr=2" },
        { "lr=float(range(2))", "lr=0.0|lr=1.0" },
        { "lr=str(choice(1,[2]))", "lr=1|lr=[2]" },
        { "lr=bool(0,1,'true')", "lr=False|lr=True|lr=True" },
        { "lr=int(1.5),float(2)", "lr=1|lr=2.0" },
        { "lr=tag(a,b,choice(1,2))", "lr=1|lr=2" },
        { "net=glob(*)", "net=large|net=large_bn|net=tiny" },
        { "net=glob(*,exclude=l*)", "net=tiny" },
        { "net=glob([t*,l*],exclude=[*_bn])", "net=large|net=tiny" },
        { "net@x=glob(?iny)", "net@x=tiny" },
        { "lr=zip(1,'a b')", "lr=1|lr='a b'" },
        { "lr=zip(range(2))", "lr=0|lr=1" },
        { "lr=interval(0,1)", "lr float 0..1" },
        { "lr=int(interval(1,8))", "lr int 1..8" },
        { "lr=tag(log,interval(1e-5,0.1))", "lr log float 1e-05..0.1 #log" },
        { "lr=tag(x,tag(log,int(interval(1,64))))", "lr log int 1..64 #x #log" },
        { "lr=int(tag(log,interval(1,64)))", "lr log int 1..64 #log" },
        { "lr=interval(0,1,step=0.3)", "lr float 0..0.9 step 0.3" },
        { "lr=tag(log,interval(0.1,1.0,0.1))", "lr log float 0.1..1 step 0.1 #log" },
        { "lr=int(interval(16,100,step=16))", "lr int 16..96 step 16" },
        { "lr=choice(a,b,weights=[3,1])", "lr=a|lr=b weights 0.75 0.25" },
        { "kiln.job.name=x", " own: kiln.job.name=x" },
        { "hydra/launcher=basic", " own: hydra/launcher=basic" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const char *arguments[] = { cases[i].text, NULL };

        check("config", arguments, cases[i].want);
    }
}

static void test_errors(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "lr=1,", "at the end: a value is missing here" },
        { "lr=choice(choice(1,2))", "column 4: choice(): the argument has several values" },
        { "lr=choice(1,range(2))", "argument 2 has several values itself" },
        { "lr=choice(1,2),3", "a function with several values among others" },
        { "lr=[range(2)],3", "several values are not allowed inside [...]" },
        { "lr={a:range(2)},3", "several values are not allowed inside [...]" },
        { "lr=choice()", "column 4: choice(): it needs values" },
        { "lr=range(a,b)", "range(): start must be a number, got 'a'" },
        { "lr=range([1])", "start must be a number, not a list" },
        { "lr=range()", "range(): 'start' is missing" },
        { "lr=range(1,2,3,4)", "range(): it takes at most 3 arguments" },
        { "lr=range(1,start=2)", "'start' is given twice" },
        { "lr=range(start=1,2)", "an argument without a name after one with a name" },
        { "lr=range(0,1,by=2)", "range(): there is no argument 'by'" },
        { "lr=range(0,3,0)", "lr: range(): a step of 0 never ends" },
        { "lr=range(0,inf)", "range() needs finite numbers" },
        { "lr=range(9000000000)", "more than 100000 values" },
        { "lr=interval(1,0)", "start must be below end, got 1 and 0" },
        { "lr=interval(0,inf)", "start and end must be finite" },
        { "lr=interval(0,1,0)", "interval(): step must be above 0, got 0" },
        { "lr=interval(0,1,step=2)", "lr: a step of 2 leaves one value between 0 and 1" },
        { "lr=int(interval(1,8,step=0.5))", "lr: a step of 0 leaves one value between 1 and 8" },
        { "lr=choice(1,2,weights=[1])", "weights must be a list of 2 numbers" },
        { "lr=choice(1,2,weights=[1,0])", "weight 2 must be a number above 0" },
        { "lr=sort(choice(1,2,weights=[1,3]))", "values with weights stay in their order" },
        { "lr=shuffle(choice(1,2,weights=[1,3]))", "values with weights stay in their order" },
        { "lr=tag(log,interval(0,1))",
          "lr: an interval on a logarithmic scale must start above 0" },
        { "lr=zip(interval(0,1))", "an interval has no single values" },
        { "lr=sort(1,a)", "only numbers, or only text" },
        { "lr=sort(interval(0,1))", "only a choice, a range or a list has an order" },
        { "lr=tag(a)", "what is tagged must be a sweep" },
        { "lr=tag(1,choice(a,b))", "a tag is text" },
        { "lr=glob([[a]])", "a pattern is text" },
        { "lr=int(choice(a,b))", "'a' is not a valid int" },
        { "lr=str(range(2))", "a range can be cast to int and float only" },
        { "lr=chioce(1,2)",
          "there is no function 'chioce' (did you mean choice?); there are bool" },
        { "kiln.job.name=a,b", "kiln.job.name is the same for all jobs of a sweep" },
        { "net=glob(x*)", "net without a valueargument 1 `net=glob(x*)`: glob() matches no option "
                          "of the group 'net'; it has large, large_bn, tiny" },
        { "ent=glob(*)", "matches no option of the group 'ent', which is not there" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const char *arguments[] = { cases[i].text, NULL };

        check_says("config", arguments, cases[i].want);
    }
}

static void test_arguments(void **unused)
{
    (void)unused;
    check("config", (const char *[]) { "name=abc", "lr=1,2", "hydra.job.name=x", "wd=7", NULL },
          "name=abc; lr=1|lr=2; wd=7 own: hydra.job.name=x");
    /* A key that is given again keeps its place; with another sign it is another. */
    check("config", (const char *[]) { "lr=1,2", "wd=5,6", "lr=3", "+lr=4", NULL },
          "lr=3; wd=5|wd=6; +lr=4");
    check("config", (const char *[]) { NULL }, "");
    /* The option of a group may be what is swept, and keys below it too. */
    check("must", (const char *[]) { "net=tiny,large", "net.depth=3", NULL },
          "net=tiny|net=large; net.depth=3");
    /* All errors are reported, each with the number of its argument. */
    check_says("config", (const char *[]) { "lr=1,", "wd=2", "x=range(a)", NULL },
               "argument 3 `x=range(a)`");
}

static void test_params(void **unused)
{
    (void)unused;
    check("params", (const char *[]) { "lr=7", "z=1,2", NULL },
          "lr=7; +extra=p|+extra=q; wd=7; name=a|name=b; b=True; none=null; z=1|z=2");
    check("config", (const char *[]) { "+kiln.sweeper.params={lr:'1,2'}", NULL },
          "lr=1|lr=2 own: +kiln.sweeper.params={lr:'1,2'}");
    check("config", (const char *[]) { "+search=tuned", NULL }, "wd=0|wd=1; +search=tuned");
    check_says("bad_params", (const char *[]) { NULL },
               "T/bad_params.yaml:1:31: kiln.sweeper.params.lr: expected text such as "
               "\"0.1,0.01\", got a list");
    check_says("bad_params", (const char *[]) { NULL }, "T/bad_params.yaml:1:43: at the end");
    check_says("list_params", (const char *[]) { NULL },
               "kiln.sweeper.params: expected a mapping from keys to values, got a list");
}

static bool is_text(void *ctx, const KilnConfig *config, const char *key)
{
    (void)ctx;
    (void)config;
    return strcmp(key, "name") == 0;
}

/* Operators stay with the values; items of typed text may be what is no value. */
static void test_operators_and_text(void **unused)
{
    static const KilnComposeHooks text = { .is_text = is_text };

    (void)unused;
    check("config", (const char *[]) { "tags+=a,[b,c]", "net:={a:1},{b:2}", "t-=x", NULL },
          "tags+=a|tags+=[b,c]; net:={a:1}|net:={b:2}; t-=x");
    check("config", (const char *[]) { "tags=extend_list(a,'b')", NULL }, "tags+=[a,'b']");
    check("config", (const char *[]) { "lr=json_str(choice(a,1))", NULL }, "lr='\"a\"'|lr='1'");
    hooks = &text;
    check("config", (const char *[]) { "name=/a=b,c,x y,${f:1,2}=3", NULL },
          "name='/a=b'|name=c|name=x\\ y|name='${f:1,2}=3'");
    check("config", (const char *[]) { "name=/a=b", NULL }, "name='/a=b'");
    check("config", (const char *[]) { "name=a,b", NULL }, "name=a|name=b");
    check_says("config", (const char *[]) { "name=/a=b,", NULL }, "'=' in a value must be quoted");
    check_says("config", (const char *[]) { "lr=/a=b,c", NULL }, "'=' in a value must be quoted");
    check_says("config", (const char *[]) { "name=a=b,range(3)", NULL }, "'=' in a value");
    hooks = NULL;
}

static void test_zip(void **unused)
{
    (void)unused;
    check("config", (const char *[]) { "lr=zip(1,2)", "name=a,b", "wd=zip(3,4)", NULL },
          "zip lr=1|lr=2; name=a|name=b; zip wd=3|wd=4");
    check_says("config", (const char *[]) { "lr=zip(1,2)", "wd=zip(3,4,5)", NULL },
               "zip() takes one value of each at a time, but lr has 2 and wd has 3");
}

static void test_conditions(void **unused)
{
    (void)unused;
    check("config", (const char *[]) { "net=tiny,large", "lr=when(net,large,1,2)", "wd=3", NULL },
          "net=tiny|net=large; lr=1|lr=2 when net 01; wd=3");
    check("config", (const char *[]) { "net=tiny,large", "+lr=when(net,large,9)", NULL },
          "net=tiny|net=large; +lr=9 when net 01");
    check("config",
          (const char *[]) { "+net=glob(*)", "lr=tag(log,when(net,[tiny,large],interval(1,2)))",
                             NULL },
          "+net=large|+net=large_bn|+net=tiny; lr log float 1..2 #log when +net 101");
    check("config", (const char *[]) { "b=true,false", "lr=int(when(b,true,choice(1.5,2)))", NULL },
          "b=True|b=False; lr=1|lr=2 when b 10");
    /* An axis comes after the one on which it depends, which may itself have a condition. */
    check("config",
          (const char *[]) { "z=when(lr,2,5,6)", "lr=when(net,tiny,range(1,3))", "wd=1,2",
                             "net=tiny,large", NULL },
          "wd=1|wd=2; net=tiny|net=large; lr=1|lr=2 when net 10; z=5|z=6 when lr 01");
    /* Of values that vary together, the first decides. */
    check("config",
          (const char *[]) { "lr=zip(1,2)", "net=zip(tiny,large)", "wd=when(net,large,3,4)", NULL },
          "zip lr=1|lr=2; zip net=tiny|net=large; wd=3|wd=4 when lr 01");
}

static void test_conditions_of_one_key(void **unused)
{
    (void)unused;
    check("config",
          (const char *[]) { "net=tiny,large", "lr=when(net,tiny,1,2)", "lr=when(net,large,2,3)",
                             NULL },
          "net=tiny|net=large; lr=1|lr=2 when net 10; lr=2|lr=3 when net 01");
    check("config",
          (const char *[]) { "net=tiny,large", "lr=when(net,tiny,1)", "lr=when(net,large,2)",
                             "lr=when(net,[large,tiny],3)", "wd=4", NULL },
          "net=tiny|net=large; lr=3 when net 11; wd=4");
    check("config",
          (const char *[]) { "net=tiny,large", "lr=when(net,tiny,1)", "wd=4",
                             "lr=when(net,large,2)", "lr=5", NULL },
          "net=tiny|net=large; lr=5; wd=4");
}

static void test_wrong_conditions(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "lr=when(net,tiny)", "column 4: when(): it needs a key, its value and what to set with" },
        { "lr=when([net],tiny,1)", "when(): the key is text (model), not a list" },
        { "lr=when(net,[],1)", "when(): the list of values of 'net' is empty" },
        { "lr=when(net,tiny,1,range(2))", "argument 4 has several values itself" },
        { "lr=when(net,tiny,when(b,1,2))", "when(): there can be one condition" },
        { "lr=when(net,tiny,zip(1,2))", "when(): the values of zip() vary together with others" },
        { "lr=zip(when(net,tiny,1,2))", "zip(): values with a condition cannot vary together" },
        { "lr=when(optimizer,sgd,1)",
          "argument 3 `lr=when(optimizer,sgd,1)`: lr: when(optimizer,...): no argument sets "
          "optimizer; add optimizer=VALUE,VALUE" },
        { "lr=when(net,[tiny,lagre],1)",
          "lr: when(net,...): net has no value lagre (did you mean large?); it has tiny, large" },
        { "lr=when(wd,1,2)", "when(wd,...): an interval has no single values" },
        { "lr=when(lr,1,1,2)", "lr: when(lr,...): this condition depends on itself" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        check_says("config",
                   (const char *[]) { "net=tiny,large", "wd=interval(0,1)", cases[i].text, NULL },
                   cases[i].want);
    check_says("config",
               (const char *[]) { "net=tiny,large", "b=when(net,tiny,1)", "b=when(net,large,2)",
                                  "lr=when(b,1,2)", NULL },
               "when(b,...): that key has several conditions itself");
}

static void test_shuffle(void **unused)
{
    static const char *const twice[] = { "lr=shuffle(range(20))", NULL };
    char *first = split("config", twice), *second = split("config", twice);
    char *plain = split("config", (const char *[]) { "lr=range(20)", NULL });

    (void)unused;
    assert_string_equal(first, second);
    assert_string_not_equal(first, plain);
    assert_int_equal(strlen(first), strlen(plain)); /* the same values */
    free(first);
    free(second);
    free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_operators_and_text),
        cmocka_unit_test(test_zip),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_conditions_of_one_key),
        cmocka_unit_test(test_wrong_conditions),
        cmocka_unit_test(test_shuffle),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
