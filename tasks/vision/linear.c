/* One linear layer on the flattened sample: multinomial logistic regression, or linear regression.
 * Each category of a row has weights of its own, as if it were one-hot. */
#include "kiln.h"
#include "kiln/tools/row_layers.h"

typedef struct Opts {
    bool zero_init;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_BOOL(Opts, zero_init, "false",
                    "weights begin at 0 instead of random; the loss has one minimum either way"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnLinear fc; /* weight NULL: there are no numbers, and a category's weights have the bias */
    KilnCategoryTables categories;
} State;

enum { NUMBERS, CATEGORIES };

/* Any sample of one shape, as a flat list of numbers, and categories beside it, or one of both. */
static const KilnTensorSpec takes[] = {
    [NUMBERS] = { .name = "x",
                  .content = KILN_IMAGE | KILN_ROW | KILN_VECTOR | KILN_SEQUENCE | KILN_MAP,
                  .dtype = KILN_F32,
                  .optional = true },
    [CATEGORIES] = { .name = "ids",
                     .content = KILN_ROW,
                     .dtype = KILN_I32,
                     .axes = "categories",
                     .optional = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t classes = io->outputs[0].shape.dim[0];
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    const KilnScope tables = kiln_scope(scope, "categories");
    const KilnFeature *x = &io->inputs[NUMBERS];
    KilnStatus status = KILN_OK;

    if (x->name != NULL)
        status = kiln_nn_linear_init(&state->fc, scope, "fc", kiln_shape_count(&x->shape), classes,
                                     true, err);
    if (status >= 0 && opts->zero_init && x->name != NULL) {
        kiln_param_set_init(state->fc.weight, zero);
        kiln_param_set_init(state->fc.bias, zero);
    }
    return status < 0 ? status
                      : kiln_nn_category_tables_init(&state->categories, &tables,
                                                     &io->inputs[CATEGORIES], classes, zero, err);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);
    const int columns[] = { 1 };
    KilnTensor *x = inputs[NUMBERS].tensor, *y = NULL, *of_categories = NULL;

    (void)step;
    if (x != NULL)
        y = kiln_nn_linear(&state->fc, kiln_flatten(x));
    if (state->categories.n > 0)
        of_categories =
            kiln_sum_axes(kiln_nn_category_tables(&state->categories, inputs[CATEGORIES].tensor),
                          columns, 1, false);
    outputs[0].tensor = y == NULL               ? of_categories
                        : of_categories == NULL ? y
                                                : kiln_add(y, of_categories);
}

static void release(KilnInstance *self)
{
    kiln_nn_category_tables_release(&((State *)kiln_state(self))->categories);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_linear = {
    .kind = KILN_KIND_MODEL,
    .name = "linear",
    .summary = "One linear layer on the flattened sample",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_linear, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
