/* Compares the kernels with the reference backend on a small network, and trains for a moment. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/doctor/machine.h"
#include "kiln/embed/run.h"
#include "kiln/ops.h"
#include "kiln/rng.h"
#include "kiln/tools/clock.h"

/* ---- Kernels --------------------------------------------------------------------------------- */

enum { SAMPLES = 4, SIDE = 16, CHANNELS = 16, CLASSES = 10, VARIABLES = 6, MOST = 1 << 14 };

static const KilnShape shapes[VARIABLES] = {
    KILN_SHAPE(CHANNELS, 3, 3, 3),
    KILN_SHAPE(CHANNELS),
    KILN_SHAPE(CHANNELS, CHANNELS, 3, 3),
    KILN_SHAPE(CHANNELS),
    KILN_SHAPE(CLASSES, SIDE *SIDE / 4 * CHANNELS),
    KILN_SHAPE(CLASSES),
};

/* The network's values and what a backend made of them. */
typedef struct Trial {
    float images[SAMPLES * SIDE * SIDE * 3];
    float values[VARIABLES][CLASSES * SIDE * SIDE / 4 * CHANNELS];
    float gradients[VARIABLES][CLASSES * SIDE * SIDE / 4 * CHANNELS];
    double loss;
} Trial;

static void draw(Trial *trial)
{
    KilnRng rng;

    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < KILN_COUNT(trial->images); i++)
        trial->images[i] = kiln_rng_normal(&rng);
    for (size_t v = 0; v < VARIABLES; v++) {
        const int64_t n = kiln_shape_count(&shapes[v]);
        const double scale = sqrt((double)shapes[v].dim[0] / (double)n);

        for (int64_t i = 0; i < n; i++)
            trial->values[v][i] = (float)scale * kiln_rng_normal(&rng);
    }
}

/* Smooth throughout: where a rounding error decides which value is the largest, gradients jump. */
static KilnTensor *network(KilnGraph *graph, Trial *trial)
{
    static const int32_t labels[SAMPLES] = { 3, 1, 4, 9 };
    const KilnConv conv = { .stride = 1, .padding = 1 };
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(SAMPLES, SIDE, SIDE, 3),
                                     trial->images);
    KilnTensor *v[VARIABLES];

    for (size_t i = 0; i < VARIABLES; i++)
        v[i] = kiln_graph_variable(graph, KILN_F32, shapes[i], trial->values[i], true,
                                   trial->gradients[i]);
    x = kiln_silu(kiln_conv2d(x, v[0], v[1], conv));
    x = kiln_silu(kiln_conv2d(x, v[2], v[3], conv));
    x = kiln_flatten(kiln_avg_pool2d(x, (KilnPool) { .kernel = 2 }));
    return kiln_cross_entropy(kiln_linear(x, v[4], v[5]),
                              kiln_graph_input(graph, KILN_I32, KILN_SHAPE(SAMPLES), labels),
                              (KilnCrossEntropy) { .reduction = KILN_REDUCTION_MEAN });
}

static KilnStatus run(KilnBackend *backend, KilnPrecision precision, Trial *trial, KilnError *err)
{
    KilnGraph *graph = NULL;
    KilnStatus status = kiln_graph_new(backend, &graph, err);

    if (status < 0)
        return status;
    kiln_graph_set_precision(graph, precision);
    kiln_graph_begin(graph);
    KilnTensor *loss = network(graph, trial);
    kiln_graph_backward(graph, loss);
    status = kiln_graph_run(graph, &loss, 1, err);
    if (status >= 0)
        trial->loss = kiln_tensor_scalar(loss);
    kiln_graph_free(graph);
    return status;
}

/* The largest difference of the loss and of each gradient, by norms; infinite where one of them is
 * not finite. */
static double difference(const Trial *a, const Trial *b)
{
    double worst = fabs(a->loss - b->loss) / fabs(b->loss);

    for (size_t v = 0; v < VARIABLES; v++) {
        double apart = 0, whole = 0;

        for (int64_t i = 0; i < kiln_shape_count(&shapes[v]); i++) {
            const double x = a->gradients[v][i], y = b->gradients[v][i];

            apart += (x - y) * (x - y);
            whole += y * y;
        }
        worst = isfinite(apart) ? fmax(worst, sqrt(apart / whole)) : INFINITY;
    }
    return isfinite(a->loss) ? worst : INFINITY;
}

static void judge(KilnSelfTest *test, KilnText *text, KilnStatus status, const KilnError *err,
                  double found, double allowed)
{
    const bool right = status >= 0 && found <= allowed;

    test->right = test->right && right;
    kiln_text_append(text, right ? "right" : "wrong");
    if (status < 0)
        kiln_text_printf(text, ": %s", err->text);
    else
        kiln_text_printf(text,
                         ": loss and gradients of a small network differ from the reference's by "
                         "%.1e (at most %.0e)",
                         found, allowed);
}

/* bf16 has 8 bits of precision, and rounding adds up over the layers. */
static KilnStatus test_kernels(KilnSelfTest *test)
{
    enum { THREADS = 2 };
    const double f32_allowed = 1e-5, bf16_allowed = 0.05;
    Trial *trials = calloc(3, sizeof(*trials));
    KilnBackend *cpu = NULL, *reference = NULL;
    KilnError err = { 0 };

    if (trials == NULL)
        return KILN_E_NOMEM;
    draw(&trials[0]);
    trials[1] = trials[2] = trials[0];
    KilnStatus status = kiln_backend_ref_new(&reference, &err);
    if (status >= 0)
        status = run(reference, KILN_PRECISION_32, &trials[0], &err);
    if (status >= 0)
        status = kiln_backend_cpu_new(THREADS, &cpu, &err);
    KilnStatus bf16 = status;
    if (status >= 0)
        status = run(cpu, KILN_PRECISION_32, &trials[1], &err);
    judge(test, &test->kernels, status, &err, difference(&trials[1], &trials[0]), f32_allowed);
    if (bf16 >= 0)
        bf16 = run(cpu, KILN_BF16_MIXED, &trials[2], &err);
    judge(test, &test->bf16_kernels, bf16, &err, difference(&trials[2], &trials[0]), bf16_allowed);
    kiln_backend_free(cpu);
    kiln_backend_free(reference);
    free(trials);
    return KILN_OK;
}

/* ---- Training -------------------------------------------------------------------------------- */

/* After each epoch. */
static void note_loss(void *ctx, const KilnRunProgress *progress)
{
    double *losses = ctx;

    for (size_t i = 0; i < progress->n_metrics; i++)
        if (strcmp(progress->metrics[i].name, "val/loss") == 0)
            losses[progress->epoch > 1] = progress->metrics[i].value;
}

static KilnStatus train(const char *dir, double losses[2], KilnError *err)
{
    char run_dir[4200];
    const char *const overrides[] = { "task=vision",
                                      "datamodule=digits",
                                      "model=mlp",
                                      "model.hidden=[64]",
                                      "optimizer=sgd",
                                      "lr=0.05",
                                      "batch_size=32",
                                      "datamodule.train_count=512",
                                      "datamodule.val_count=128",
                                      "datamodule.test_count=0",
                                      "trainer.max_epochs=4",
                                      "trainer.num_workers=0",
                                      "callbacks=none",
                                      "logger=none",
                                      "test=false",
                                      "seed=1",
                                      run_dir,
                                      NULL };
    KilnRegistry *registry = NULL;
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnRunResult result;

    snprintf(run_dir, sizeof(run_dir), "kiln.run.dir='%s/run'", dir);
    KilnStatus status = kiln_registry_new(&registry, err);
    if (status >= 0 && kiln_errors_new(&errors) < 0)
        status = kiln_error_nomem(err, 0);
    /* An empty folder of configs: the default ones, and not those of the user's project. */
    const KilnComposeRequest request = { .config_path = dir,
                                         .overrides = overrides,
                                         .registry = registry,
                                         .sections = kiln_run_sections() };
    if (status >= 0) {
        status = kiln_compose(&request, &config, errors);
        if (status >= 0)
            status = kiln_config_check(config, registry, errors);
        if (status < 0)
            kiln_error_set(err, status, "%s", kiln_errors_text(errors, 0));
    }
    if (status >= 0) {
        const KilnRunEnv env = {
            .registry = registry, .overrides = overrides, .progress = note_loss, .ctx = losses
        };

        status = kiln_run_fit(config, &env, &result, err);
    }
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return status;
}

static KilnStatus test_training(KilnSelfTest *test)
{
    double losses[2] = { NAN, NAN };
    KilnError err = { 0 };
    KilnText dir = { 0 };

    kiln_text_printf(&dir, "%s/kiln-doctor-XXXXXX", kiln_tmpdir("/tmp"));
    if (dir.failed)
        return KILN_E_NOMEM;
    KilnStatus status = mkdtemp(dir.data) != NULL ? train(dir.data, losses, &err)
                                                  : kiln_error_errno(&err, dir.data);
    const bool right = status >= 0 && losses[1] < 0.8 * losses[0];
    test->right = test->right && right;
    if (status < 0)
        kiln_text_printf(&test->training, "wrong: %s", err.text);
    else
        kiln_text_printf(&test->training,
                         "%s: the loss of an MLP on drawn digits went from %.3f after the first "
                         "epoch to %.3f after the fourth",
                         right ? "right" : "wrong", losses[0], losses[1]);
    if (kiln_path_remove(dir.data, &err) < 0)
        kiln_text_printf(&test->training, " (%s)", err.text);
    kiln_text_release(&dir);
    return KILN_OK;
}

KilnStatus kiln_self_test(KilnSelfTest *ret, KilnError *err)
{
    const double start = kiln_clock();

    *ret = (KilnSelfTest) { .right = true };
    KilnStatus status = test_kernels(ret);
    if (status >= 0)
        status = test_training(ret);
    ret->seconds = kiln_clock() - start;
    return status >= 0 ? KILN_OK : kiln_error_nomem(err, sizeof(Trial));
}

void kiln_self_test_release(KilnSelfTest *test)
{
    kiln_text_release(&test->kernels);
    kiln_text_release(&test->bf16_kernels);
    kiln_text_release(&test->training);
}
