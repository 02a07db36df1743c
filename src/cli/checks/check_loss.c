/* Checks a loss by itself, for each kind of target that it takes: a finite scalar, with gradients
 * as finite differences in f64 say, and no sum over the rows. */
#include <math.h>
#include <string.h>

#include "cli/checks/checks.h"
#include "graph/backend.h"
#include "graph/gradcheck.h"
#include "kiln/loss.h"
#include "train/step/module_step.h"

enum { ROWS = 5, COPIES = 2, WIDTH = 3, N = ROWS * WIDTH };
static const double most_error = 1e-4, rounding = 1e-9;

typedef enum Target { CLASSES, SHARES, NUMBERS, LABELS, TARGETS } Target;
static const char *const names[TARGETS] = { "classes", "shares of classes", "numbers", "labels" };

typedef struct Loss {
    KilnCase *self;
    KilnInstance *loss;
    Target target;
    int32_t classes[COPIES * ROWS];
    float values[COPIES * N];
    int64_t rows; /* of the batch */
    const KilnDataSpec *spec;
} Loss;

static KilnTensor *record(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    Loss *of = ctx;
    static KilnStep step; /* lives while the graph does; in a child process */
    KilnTensor *target;

    step = (KilnStep) { .graph = graph, .training = true, .spec = of->spec };
    target = of->target == CLASSES
                 ? kiln_graph_input(graph, KILN_I32, KILN_SHAPE(of->rows), of->classes)
                 : kiln_graph_input(graph, KILN_F32, KILN_SHAPE(of->rows, WIDTH), of->values);
    return kiln_loss(of->loss, &step, x[0], target);
}

/* The rows, and copies of them. */
static void fill(Loss *of, double *output)
{
    for (int k = 0; k < COPIES * N; k++) {
        const int i = k % N;

        output[k] = (double)(i * 37 % 19 - 9) / 6.0 + 0.013 * i;
        of->values[k] = of->target == SHARES   ? (i % WIDTH == i / WIDTH % WIDTH ? 0.75F : 0.125F)
                        : of->target == LABELS ? (float)(i % 2)
                                               : (float)(i % 7) / 3.0F - 1.1F;
    }
    for (int k = 0; k < COPIES * ROWS; k++)
        of->classes[k] = (k % ROWS * 2 + 1) % WIDTH;
    of->rows = ROWS;
}

/* The loss of so many copies of the rows. */
static KilnStatus loss_of(Loss *of, KilnBackend *backend, double *output, int copies, double *ret,
                          KilnError *err)
{
    KilnGraph *graph = NULL;
    KilnStatus status = kiln_graph_new(backend, &graph, err);

    if (status < 0)
        return status;
    of->rows = (int64_t)copies * ROWS;
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_variable(graph, KILN_F64, KILN_SHAPE(of->rows, WIDTH), output, false,
                                        NULL);
    KilnTensor *loss = record(graph, &x, of);
    status = kiln_graph_run(graph, &loss, 1, err);
    if (status >= 0)
        *ret = kiln_tensor_scalar(loss);
    kiln_graph_free(graph);
    of->rows = ROWS;
    return status;
}

/* A sum over the rows doubles with them, a mean stays; losses of pairs of rows do neither. */
static KilnStatus check_mean(Loss *of, KilnBackend *backend, double *output, KilnError *err)
{
    double once = 0.0, twice = 0.0;
    KilnStatus status = loss_of(of, backend, output, 1, &once, err);

    if (status >= 0)
        status = loss_of(of, backend, output, COPIES, &twice, err);
    if (status >= 0 && fabs(once) > rounding && fabs(twice - 2.0 * once) <= rounding * fabs(once))
        kiln_case_fail(of->self,
                       "return the mean (kiln_mean): batches differ in size, and groups "
                       "of them and ranks are averaged",
                       "of %s: it is a sum: %.6g for %d rows, and %.6g for these and their copies",
                       names[of->target], once, ROWS, twice);
    return status;
}

/* Whether the loss takes this kind of target; if so, check its gradient. */
static bool check_target(Loss *of, KilnGradWorst *ret)
{
    double output[COPIES * N];
    const KilnGradVariable variable = { KILN_SHAPE(ROWS, WIDTH), output };
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    fill(of, output);
    KilnStatus status = kiln_loss_setup(of->loss, of->spec, &err);
    if (status >= 0)
        status = kiln_backend_ref_f64_new(&backend, &err);
    if (status >= 0)
        status = kiln_gradcheck(backend, record, of, &variable, 1, 1e-6, ret, &err);
    if (status >= 0)
        status = check_mean(of, backend, output, &err);
    kiln_backend_free(backend);
    if (status < 0 && status != KILN_E_SHAPE && status != KILN_E_TYPE && status != KILN_E_RANGE &&
        status != KILN_E_MISSING && status != KILN_E_KEY)
        kiln_case_fail_with(of->self, &err);
    return status >= 0;
}

void kiln_contract_loss(KilnCase *self)
{
    static const KilnFeature features[TARGETS] = {
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        { .name = "target",
          .content = KILN_LABEL,
          .dtype = KILN_F32,
          .shape = { .rank = 1, .dim = { WIDTH } } },
        { .name = "labels",
          .content = KILN_LABEL,
          .dtype = KILN_F32,
          .shape = { .rank = 1, .dim = { WIDTH } } },
    };
    static const char *const advice[] = {
        "check the `gradient` of its operations and kiln_detach",
        "check the `gradient` of its operations; or, if it is a loss of classes alone, refuse data "
        "without classes in setup"
        " (KilnDataSpec.n_classes is 0)",
    };
    char taken[128] = "";

    for (int target = 0; target < TARGETS && !kiln_case_failed(self); target++) {
        const KilnDataSpec spec = { .features = &features[target],
                                    .n_features = 1,
                                    .n_classes = target == NUMBERS ? 0 : WIDTH };
        Loss of = { .self = self, .target = (Target)target, .spec = &spec };
        KilnGradWorst worst = { .error = 0.0 };
        KilnCaseInstance built;

        if (!kiln_case_open(self, &built))
            return;
        of.loss = built.instance;
        if (check_target(&of, &worst)) {
            snprintf(taken + strlen(taken), sizeof(taken) - strlen(taken), "%s%s",
                     taken[0] != '\0' ? ", " : "", names[target]);
            if (!(worst.error <= most_error))
                kiln_case_fail(self, advice[target == NUMBERS],
                               "of %s: the loss changes by %.6g with element %lld, its gradient "
                               "says %.6g",
                               names[target], worst.difference, (long long)worst.element,
                               worst.gradient);
        }
        kiln_case_close(&built);
    }
    if (taken[0] == '\0')
        kiln_case_fail(self, "see KilnLossOps.loss in kiln/loss.h",
                       "it takes none of the targets: classes, shares of classes, numbers, labels");
    else
        kiln_case_pass(self, "gradients of %s", taken);
}
