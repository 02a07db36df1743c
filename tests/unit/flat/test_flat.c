/* The flat functions as another language calls them: a config as JSON, components of the caller, a
 * run with them, and predictions. tests/python/ uses all of them through Python. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/embed/flat.h"
#include "kiln/state.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

enum { POINTS = 120, WIDTH = 2 };

static float points[POINTS][WIDTH];
static int64_t labels[POINTS]; /* the library wants i32 */

/* What the caller's functions were called with. */
static struct {
    char options[512];
    int created, destroyed, epochs, metrics, samples;
    bool fails;
} seen;

static KilnStatus create(void *ctx, const char *path, const char *options, void **ret,
                         KilnError *err)
{
    (void)err;
    assert_ptr_equal(ctx, &seen);
    if (strcmp(path, "callbacks.count") == 0)
        snprintf(seen.options, sizeof(seen.options), "%s", options);
    seen.created++;
    *ret = &seen;
    return KILN_OK;
}

static void destroy(void *ctx, void *object)
{
    assert_ptr_equal(ctx, object);
    seen.destroyed++;
}

static KilnStatus hook(void *object, const char *name, KilnTrainer *trainer, KilnError *err)
{
    double loss = 0.0;

    assert_ptr_equal(object, &seen);
    assert_string_equal(name, "on_train_epoch_end");
    assert_true(kiln_trainer_metric(trainer, "train/loss", &loss));
    if (seen.fails)
        return kiln_flat_error_set(err, KILN_E_PLUGIN, "not today");
    seen.epochs++;
    return KILN_OK;
}

static KilnStatus save(void *object, KilnState *state, KilnError *err)
{
    (void)object;
    (void)err;
    kiln_state_set_str(state, "text", "kept");
    return KILN_OK;
}

static KilnStatus load(void *object, const KilnState *state, KilnError *err)
{
    const char *text = NULL;

    (void)object;
    (void)err;
    assert_true(kiln_state_get_str(state, "text", &text));
    assert_string_equal(text, "kept");
    return KILN_OK;
}

static KilnStatus compute(void *object, KilnMetricState *state, int64_t rows, int64_t width,
                          const float *scores, const void *truth, KilnError *err)
{
    const int32_t *classes = truth;
    int64_t right = 0;

    (void)object;
    seen.metrics++;
    for (int64_t i = 0; i < rows; i++)
        right += (scores[i * width + 1] > scores[i * width]) == (classes[i] == 1);
    return kiln_metric_state_report(state, NULL, (double)right / (double)rows, err);
}

static KilnStatus set_up(void *object, const char *stage, uint64_t seed, KilnFlatData *data,
                         KilnError *err)
{
    static const char *const names[] = { "below", "above" };
    const int64_t width = WIDTH;

    (void)object;
    (void)seed;
    assert_string_equal(stage, "fit");
    if (kiln_flat_data_feature(data, "point", "vector", KILN_F32, 1, &width, false, 0, err) < 0 ||
        kiln_flat_data_feature(data, "label", "label", KILN_I32, 0, NULL, false, 0, err) < 0 ||
        kiln_flat_data_classes(data, names, 2, err) < 0 ||
        kiln_flat_data_samples(data, "train", POINTS, err) < 0 ||
        kiln_flat_data_array(data, "train", "point", KILN_F32, points, NULL, err) < 0 ||
        kiln_flat_data_array(data, "train", "label", KILN_I64, labels, NULL, err) < 0)
        return err->status;
    return kiln_flat_data_samples(data, "val", 20, err); /* one by one */
}

static KilnStatus get(void *object, const char *split, int64_t index, void *const *to,
                      int64_t *lengths, KilnError *err)
{
    (void)object;
    (void)lengths;
    (void)err;
    assert_string_equal(split, "val");
    memcpy(to[0], points[index], sizeof(points[0]));
    *(int32_t *)to[1] = (int32_t)labels[index];
    seen.samples++;
    return KILN_OK;
}

static KilnFlatComponent *component(const char *kind, const char *name)
{
    KilnFlatComponent *ret = NULL;

    assert_int_equal(
        kiln_flat_component_new(kind, name, "Of the test", create, destroy, &seen, &ret, NULL),
        KILN_OK);
    return ret;
}

static void option(KilnFlatComponent *to, const char *name, const char *type, const char *value,
                   const char *const *choices)
{
    assert_int_equal(kiln_flat_component_option(to, name, type, value, choices, "an option", NULL),
                     KILN_OK);
}

static const char *const words[] = { "a", "b", NULL };
static KilnFlatComponent *all[3];
static KilnRegistry *registry;

static int set_up_components(void **unused)
{
    KilnError err = { 0 };

    for (int i = 0; i < POINTS; i++) {
        points[i][0] = (float)(i * 37 % 101 - 50) / 50.0f;
        points[i][1] = (float)(i * 61 % 103 - 51) / 51.0f;
        labels[i] = points[i][0] < points[i][1];
    }
    memset(&seen, 0, sizeof(seen));
    all[0] = component("callback", "count");
    option(all[0], "times", "int", "3", NULL);
    option(all[0], "rate", "float?", "null", NULL);
    option(all[0], "name", "str", NULL, NULL);
    option(all[0], "mode", "str", "b", words);
    option(all[0], "parts", "float[]", "[1, 2.5]", NULL);
    option(all[0], "on", "bool", "false", NULL);
    option(all[0], "note", "str?", "null", NULL);
    assert_int_equal(kiln_flat_callback_hook(all[0], "on_nothing", hook, NULL), KILN_E_KEY);
    assert_int_equal(kiln_flat_callback_hook(all[0], "on_train_epoch_end", hook, NULL), KILN_OK);
    kiln_flat_callback_state(all[0], save, load);
    all[1] = component("metric", "right");
    assert_int_equal(kiln_flat_metric_ops(all[1], "classes", "max", compute, NULL), KILN_OK);
    all[2] = component("datamodule", "lines");
    option(all[2], "more", "int[]", "[]", NULL);
    kiln_flat_datamodule_ops(all[2], set_up, get);
    assert_int_equal(kiln_registry_new(&registry, &err), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(all); i++)
        if (kiln_flat_component_add(all[i], registry, &err) < 0)
            fail_msg("%s", err.text);
    return make_work(unused);
}

static int tear_down_components(void **unused)
{
    kiln_registry_free(registry);
    for (size_t i = 0; i < KILN_COUNT(all); i++)
        kiln_flat_component_free(all[i]);
    return remove_work(unused);
}

/* The config of a run in work/run; `more` may be NULL. */
static KilnStatus compose_run(const char *more, KilnConfig **ret, KilnErrors *errors)
{
    char dir[128];
    const char *const overrides[] = {
        dir,
        "datamodule=lines",
        "task=classification",
        "model=mlp",
        "model.hidden=[8]",
        "trainer.max_epochs=2",
        "trainer.threads=1",
        "test=false",
        "+callbacks.count={_target_:count,name:it}",
        "+task.metrics.right={_target_:right}",
        more,
        NULL,
    };

    snprintf(dir, sizeof(dir), "kiln.run.dir=%s/run", work);
    return kiln_flat_compose(registry, NULL, NULL, NULL, overrides, ret, errors);
}

static KilnConfig *composed(const char *more)
{
    KilnErrors *errors = NULL;
    KilnConfig *ret = NULL;

    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    if (compose_run(more, &ret, errors) < 0)
        fail_msg("%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    return ret;
}

static json_t *parsed(char *text)
{
    json_t *ret = json_loads(text, 0, NULL);

    assert_non_null(ret);
    free(text);
    return ret;
}

static void test_config(void **unused)
{
    KilnConfig *config = composed("lr=0.25");
    char *text = NULL;

    (void)unused;
    assert_int_equal(kiln_flat_config_json(config, &text, NULL), KILN_OK);
    json_t *json = parsed(text);
    assert_null(json_object_get(json, "kiln"));
    const json_t *optimizer = json_object_get(json, "optimizer");
    assert_true(json_real_value(json_object_get(optimizer, "lr")) == 0.25);
    assert_true(json_is_real(json_object_get(optimizer, "momentum"))); /* also of whole numbers */
    json_decref(json);
    assert_int_equal(kiln_flat_config_origins(config, &text, NULL), KILN_OK);
    json = parsed(text);
    assert_string_equal(json_string_value(json_object_get(json, "lr")), "argument 11 `lr=0.25`");
    assert_string_equal(json_string_value(json_object_get(json, "callbacks.count.mode")),
                        "default of callback/count");
    json_decref(json);
    kiln_config_free(config);
    text = kiln_flat_override("root", "it's");
    assert_string_equal(text, "root='it\\'s'");
    free(text);
}

static void test_options_are_checked(void **unused)
{
    static const char *const wrong[] = {
        "callbacks.count.times=many", "callbacks.count.mode=c", "callbacks.count.parts=[x]",
        "callbacks.count.on=3",       "callbacks.count.tims=1", "callbacks.count.name=null",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(wrong); i++) {
        KilnErrors *errors = NULL;
        KilnConfig *config = NULL;

        assert_int_equal(kiln_errors_new(&errors), KILN_OK);
        if (compose_run(wrong[i], &config, errors) >= 0 ||
            strstr(kiln_errors_text(errors, 0), "callbacks.count.") == NULL)
            fail_msg("%s is accepted", wrong[i]);
        kiln_errors_free(errors);
    }
}

static int rows;
static void row(void *ctx, const char *phase, int64_t epoch, int64_t step, const char *const *names,
                const double *values, size_t n)
{
    (void)epoch;
    (void)step;
    assert_ptr_equal(ctx, &rows);
    assert_string_equal(phase, "fit");
    for (size_t i = 0; i < n; i++)
        rows += strcmp(names[i], "val/right") == 0 && values[i] >= 0.0 && values[i] <= 1.0;
}

static void fit_flat(KilnFlatEnv *env, const char *more, KilnStatus want, const char *says)
{
    KilnConfig *config = composed(more);
    KilnError *err = kiln_flat_error_new();

    assert_int_equal(kiln_flat_fit(env, config, err), want);
    assert_non_null(strstr(kiln_flat_error_text(err), says));
    kiln_flat_error_free(err);
    kiln_config_free(config);
}

static void test_run(void **unused)
{
    const int64_t shape[] = { WIDTH };
    KilnFlatEnv *env = kiln_flat_env_new(registry, &rows);
    KilnPredictor *predictor = NULL;
    KilnPredictions *predictions = NULL;
    KilnError err = { 0 };
    const char *message = NULL;
    float probabilities[3][2];
    int64_t dims[KILN_MAX_RANK];
    bool same = false;
    char *text = NULL;
    int rank = 0;

    (void)unused;
    rows = 0;
    kiln_flat_env_rows(env, row);
    fit_flat(env, "callbacks.count.rate=0.5", KILN_OK, "");
    assert_string_equal(kiln_flat_run_status(env), "finished");
    assert_string_equal(seen.options,
                        "{\"times\": 3, \"rate\": 0.5, \"name\": \"it\", \"mode\": \"b\", "
                        "\"parts\": [1.0, 2.5], \"on\": false, \"note\": null}");
    assert_int_equal(seen.epochs, 2);
    assert_int_equal(rows, 2);
    assert_int_equal(seen.created, seen.destroyed);
    assert_true(seen.metrics >= 2 && seen.samples >= 40);

    assert_int_equal(
        kiln_flat_predictor_open(registry, kiln_flat_run_dir(env), NULL, 1, &predictor, &err),
        KILN_OK);
    assert_int_equal(kiln_flat_predictor_describe(predictor, &text, &err), KILN_OK);
    json_t *json = parsed(text);
    assert_int_equal(json_array_size(json_object_get(json, "fields")), 1);
    assert_int_equal(json_array_size(json_object_get(json, "classes")), 2);
    json_decref(json);
    KilnFlatSamples *samples = kiln_flat_samples_new(3);
    assert_int_equal(
        kiln_flat_samples_array(samples, 0, "point", KILN_F32, 1, shape, points[0], &err), KILN_OK);
    assert_int_equal(kiln_flat_samples_array(samples, 2, NULL, KILN_F32, 1, shape, points[2], &err),
                     KILN_OK);
    assert_int_equal(kiln_flat_samples_number(samples, 3, "point", 1.0, &err), KILN_E_RANGE);
    assert_int_equal(kiln_flat_predict(predictor, samples, &predictions, &err), KILN_OK);
    assert_int_equal(kiln_flat_predictions_failed(predictions, 0, &message), 1);
    assert_non_null(strstr(message, "point"));
    assert_int_equal(kiln_flat_predictions_failed(predictions, 2, &message), -1);
    assert_string_equal(kiln_flat_predictions_output(predictions, 0, 0, &rank, dims, &same),
                        "probabilities");
    assert_true(same && rank == 1 && dims[0] == 2);
    kiln_flat_predictions_copy(predictions, 0, 3, 0, &probabilities[0][0]);
    assert_true(probabilities[1][0] != probabilities[1][0]); /* NaN */
    assert_float_equal(probabilities[2][0] + probabilities[2][1], 1.0f, 1e-6f);
    assert_null(kiln_flat_predictions_results(predictions, 0));
    kiln_predictions_free(predictions);
    kiln_flat_samples_free(samples);
    kiln_predictor_free(predictor);
    kiln_flat_env_free(env);
}

/* The state of a callback in a resumed run, and a hook that fails. */
static void test_resume_and_failure(void **unused)
{
    const char *const more[] = { "trainer.max_epochs=3", NULL };
    KilnFlatEnv *env = kiln_flat_env_new(registry, NULL);
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    char run[128];

    (void)unused;
    fit_flat(env, NULL, KILN_OK, "");
    snprintf(run, sizeof(run), "%s", kiln_flat_run_dir(env));
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_int_equal(kiln_flat_compose_resumed(registry, run, more, &config, errors), KILN_OK);
    assert_int_equal(kiln_flat_env_resume(env, run, &err), KILN_OK);
    seen.fails = true;
    assert_int_equal(kiln_flat_fit(env, config, &err), KILN_E_PLUGIN);
    assert_non_null(strstr(err.text, "not today"));
    assert_string_equal(kiln_flat_run_status(env), "failed");
    seen.fails = false;
    assert_int_equal(kiln_flat_fit(env, config, &err), KILN_OK);
    assert_string_equal(kiln_flat_run_status(env), "finished");
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_flat_env_free(env);
}

#define RUN_TEST(name)                                                                             \
    cmocka_unit_test_setup_teardown(name, set_up_components, tear_down_components)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_config),
        RUN_TEST(test_options_are_checked),
        RUN_TEST(test_run),
        RUN_TEST(test_resume_and_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
