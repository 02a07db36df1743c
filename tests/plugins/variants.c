/* Plugins for test_plugin.c, which compiles this file once for each variant:
 * a good one, and ones that a program must refuse. */
#include "kiln.h"

typedef struct Window {
    int64_t length;
} Window;

typedef struct Opts {
    int64_t size;
    double rate;
    int64_t size2;
    Window window;
} Opts;

#ifdef BAD_DEFAULT
#define SIZE_DEFAULT "many"
#else
#define SIZE_DEFAULT "3"
#endif

#ifdef CHOICES_END
static const KilnChoice sizes[] = { { "one", 1 } };
#endif
#ifdef NESTED_END
static const KilnField window_fields[] = {
    KILN_FIELD_I64(Window, length, "1", 1, 10, "how long"),
};
#endif

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, size, SIZE_DEFAULT, 1, 10, "how large"),
    KILN_FIELD_F64(Opts, rate, "0.5", 0.0, 1.0, "how fast"),
#ifdef CHOICES_END
    KILN_FIELD_ENUM(Opts, size2, "one", sizes, "open"),
#endif
#ifdef NESTED_END
    KILN_FIELD_STRUCT(Opts, window, Window, window_fields, "open"),
#endif
#ifndef FIELDS_END
    KILN_FIELD_END,
#endif
};

static const KilnTensorSpec takes[] = {
    { .name = "x", .content = KILN_IMAGE | KILN_VECTOR, .dtype = KILN_F32 },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus set_up_model(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                               KilnError *err)
{
    (void)self;
    (void)scope;
    (void)io;
    (void)err;
    return KILN_OK;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    (void)self;
    (void)step;
    (void)inputs;
    (void)outputs;
}

static const KilnModelOps ops = {
    .signature = &signature,
    .setup = set_up_model,
#ifndef NO_FORWARD
    .forward = forward,
#endif
};

static const KilnComponent first = {
    .kind = KILN_KIND_MODEL,
    .name = "plugin_model",
    .summary = "Nothing, for tests",
#ifdef FIELDS_LENGTH
    .fields = fields,
#else
    KILN_FIELDS(fields),
#endif
    .opts_size = sizeof(Opts),
    .ops.model = &ops,
};

static const KilnComponent second = {
    .kind = KILN_KIND_MODEL,
#ifdef DUPLICATE
    .name = "plugin_model",
#else
    .name = "plugin_other",
#endif
    .summary = "Nothing either",
#ifndef NO_OPS
    .ops.model = &ops,
#endif
};

#ifdef LIST_END
static const KilnComponent *const list[] = { &first, &second };
#else
static const KilnComponent *const list[] = { &first, &second, NULL };
#endif

#if defined NO_SYMBOL
KILN_API const void *some_other_symbol(void);
KILN_API const void *some_other_symbol(void)
{
    return list;
}
#elif defined UNDEFINED
KILN_API void kiln_no_such_function(void);
KILN_API const KilnPluginInfo *kiln_plugin_v1(void);
KILN_API const KilnPluginInfo *kiln_plugin_v1(void)
{
    kiln_no_such_function();
    return NULL;
}
#elif defined NULL_INFO
KILN_API const KilnPluginInfo *kiln_plugin_v1(void);
KILN_API const KilnPluginInfo *kiln_plugin_v1(void)
{
    return list[0] == NULL ? (const KilnPluginInfo *)list : NULL;
}
#else
#ifndef INFO_MAGIC
#define INFO_MAGIC KILN_PLUGIN_MAGIC
#endif
#ifndef INFO_ABI
#define INFO_ABI KILN_ABI
#endif
#ifndef INFO_COMPONENT
#define INFO_COMPONENT sizeof(KilnComponent)
#endif
#ifndef INFO_FIELD
#define INFO_FIELD sizeof(KilnField)
#endif
#ifndef INFO_TENSOR_SPEC
#define INFO_TENSOR_SPEC sizeof(KilnTensorSpec)
#endif
#ifndef INFO_OPS
#define INFO_OPS KILN_OPS_SIZES
#endif
#ifndef INFO_KINDS
#define INFO_KINDS KILN_KIND_COUNT
#endif
#ifdef INFO_LIST
#define INFO_LENGTH 1
#else
#define INFO_LIST list
#define INFO_LENGTH KILN_COUNT(list)
#endif
KILN_API const KilnPluginInfo *kiln_plugin_v1(void);
KILN_API const KilnPluginInfo *kiln_plugin_v1(void)
{
    static const uint32_t sizes[KILN_KIND_COUNT] = INFO_OPS;
    static const KilnPluginInfo info = {
        .magic = INFO_MAGIC,
        .abi = INFO_ABI,
        .size = sizeof(KilnPluginInfo),
        .component_size = INFO_COMPONENT,
        .field_size = INFO_FIELD,
        .tensor_spec_size = INFO_TENSOR_SPEC,
        .signature_size = sizeof(KilnSignature),
        .model_use_size = sizeof(KilnModelUse),
        .version = KILN_VERSION,
        .components = INFO_LIST,
        .ops_sizes = sizes,
        .n_kinds = INFO_KINDS,
        .n_components = INFO_LENGTH,
    };
    return list[0] != NULL ? &info : NULL;
}
#endif
