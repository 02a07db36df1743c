/* Checkpoints by owner: which ones an owner keeps and prunes, what components save in them, and
 * what they load. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/trainer.h"

#define RUN_TEST(test) cmocka_unit_test_setup_teardown(test, make_work, remove_work)

/* ---- A saver -------------------------------------------------------------------------------- */

/* Saves at each n-th step under the usual name, keeps the newest `keep`; with a state of every
 * kind. */
typedef struct SaverOpts {
    int64_t every, keep, shape;
    bool weights_only, tidies, at_epoch_end;
} SaverOpts;

typedef struct SaverState {
    char names[8][64];
    int64_t n, steps;
    float sums[3];
    uint8_t bytes[5];
    char file[32]; /* what its file said when it was loaded */
} SaverState;

static const KilnField saver_fields[] = {
    KILN_FIELD_I64(SaverOpts, every, "1", 1, 1000, "steps"),
    KILN_FIELD_I64(SaverOpts, keep, "1", 0, 8, "folders"),
    KILN_FIELD_I64(SaverOpts, shape, "3", 1, 3, "of the sums"),
    KILN_FIELD_BOOL(SaverOpts, weights_only, "false", "without the rest"),
    KILN_FIELD_BOOL(SaverOpts, tidies, "true", "prune"),
    KILN_FIELD_BOOL(SaverOpts, at_epoch_end, "false", "instead of at steps"),
    KILN_FIELD_END,
};

static SaverState seen; /* of the saver that was loaded or ran last */

static KilnStatus saver_save(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const SaverOpts *opts = kiln_opts(self);
    SaverState *state = kiln_state(self);
    char name[64], oldest[64] = "";

    kiln_trainer_checkpoint_name(trainer, name, sizeof(name));
    if (state->n > 0 && strcmp(state->names[state->n - 1], name) == 0)
        return KILN_OK;
    if (opts->keep > 0 && state->n == opts->keep) {
        memcpy(oldest, state->names[0], sizeof(oldest));
        memmove(state->names[0], state->names[1], (size_t)(state->n - 1) * sizeof(name));
        state->n--;
    }
    if (opts->keep > 0)
        memcpy(state->names[state->n++], name, sizeof(name));
    KilnStatus status = kiln_trainer_save(trainer, opts->keep > 0 ? self : NULL, name,
                                          opts->weights_only ? KILN_SAVE_WEIGHTS : 0, err);
    if (status >= 0 && oldest[0] != '\0')
        status = kiln_trainer_delete(trainer, self, oldest, err);
    return status;
}

static KilnStatus saver_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const SaverOpts *opts = kiln_opts(self);
    SaverState *state = kiln_state(self);

    state->steps++;
    state->sums[0] += 0.5f;
    state->bytes[4]++;
    seen = *state;
    if (opts->at_epoch_end || kiln_trainer_global_step(trainer) % opts->every != 0)
        return KILN_OK;
    return saver_save(self, trainer, err);
}

static KilnStatus saver_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const SaverOpts *opts = kiln_opts(self);

    return opts->at_epoch_end ? saver_save(self, trainer, err) : KILN_OK;
}

static KilnStatus saver_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const SaverOpts *opts = kiln_opts(self);
    SaverState *state = kiln_state(self);

    const int64_t n = state->n;

    state->n = 0;
    for (int64_t i = 0; i < n; i++)
        if (kiln_trainer_claim(trainer, self, state->names[i]))
            memmove(state->names[state->n++], state->names[i], sizeof(state->names[i]));
    return opts->tidies ? kiln_trainer_prune(trainer, self, err) : KILN_OK;
}

static void saver_state_dict(KilnInstance *self, KilnState *saved)
{
    const SaverOpts *opts = kiln_opts(self);
    const SaverState *state = kiln_state(self);

    kiln_state_set_i64(saved, "n", state->n);
    kiln_state_set_i64(saved, "steps", state->steps);
    for (int64_t i = 0; i < state->n; i++) {
        char key[32];

        snprintf(key, sizeof(key), "name_%lld", (long long)i);
        kiln_state_set_str(saved, key, state->names[i]);
    }
    kiln_state_set_tensor(saved, "sums", KILN_F32, &KILN_SHAPE(opts->shape), state->sums);
    kiln_state_set_tensor(saved, "bytes", KILN_U8, &KILN_SHAPE(5, 1), state->bytes);
}

static KilnStatus saver_load(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    SaverState *state = kiln_state(self);
    KilnDType dtype = KILN_F64;
    KilnShape shape;
    const char *name;

    (void)err;
    assert_true(kiln_state_get_i64(saved, "n", &state->n));
    assert_true(kiln_state_get_i64(saved, "steps", &state->steps));
    for (int64_t i = 0; i < state->n; i++) {
        char key[32];

        snprintf(key, sizeof(key), "name_%lld", (long long)i);
        assert_true(kiln_state_get_str(saved, key, &name));
        snprintf(state->names[i], sizeof(state->names[i]), "%s", name);
    }
    assert_true(kiln_state_find_tensor(saved, "sums", &dtype, &shape));
    assert_int_equal(dtype, KILN_F32);
    assert_true(kiln_state_get_tensor(saved, "sums", dtype, &shape, state->sums));
    assert_false(kiln_state_get_tensor(saved, "sums", KILN_I32, &shape, state->sums));
    assert_false(kiln_state_get_tensor(saved, "sums", dtype, &KILN_SHAPE(7), state->sums));
    assert_false(kiln_state_find_tensor(saved, "bites", &dtype, &shape));
    assert_true(kiln_state_get_tensor(saved, "bytes", KILN_U8, &KILN_SHAPE(5, 1), state->bytes));
    seen = *state;
    return KILN_OK;
}

static KilnStatus saver_write(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                              KilnError *err)
{
    const SaverState *state = kiln_state(self);
    char path[512], text[32];

    (void)trainer;
    snprintf(path, sizeof(path), "%s/%s.txt", dir, kiln_instance_path(self));
    snprintf(text, sizeof(text), "after %lld", (long long)state->steps);
    return kiln_file_write_plain(path, text, err);
}

static KilnStatus saver_read(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                             KilnError *err)
{
    char path[512], *text = NULL;
    size_t size = 0;

    (void)trainer;
    snprintf(path, sizeof(path), "%s/%s.txt", dir, kiln_instance_path(self));
    KilnStatus status = kiln_file_read(path, 64, &text, &size, err);
    snprintf(seen.file, sizeof(seen.file), "%s", status >= 0 ? text : "");
    free(text);
    return status;
}

static const KilnCallbackOps saver_ops = {
    .on_fit_start = saver_fit_start,
    .on_train_batch_end = saver_batch_end,
    .on_train_epoch_end = saver_epoch_end,
    .state_dict = saver_state_dict,
    .load_state_dict = saver_load,
    .on_save_checkpoint = saver_write,
    .on_load_checkpoint = saver_read,
    .rank = KILN_RANK_SAVES,
};

static const KilnComponent saver_component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "test_saver",
    .summary = "Save at fixed steps",
    KILN_FIELDS(saver_fields),
    .opts_size = sizeof(SaverOpts),
    .state_size = sizeof(SaverState),
    .ops.callback = &saver_ops,
};

static const KilnComponent *const savers[] = { &saver_component, NULL };

/* A run of 15 steps in 3 epochs with a saver, and perhaps another. */
#define ONE(options)                                                                               \
    "~callbacks.model_checkpoint ++callbacks.a={_target_:callback/test_saver," options "}"
#define TWO(options) " ++callbacks.b={_target_:callback/test_saver," options "}"

/* The folders of a run, "a b c". */
static const char *folders(const char *name)
{
    static char lists[2][1024];
    static int turn;
    char *list = lists[turn++ % 2];
    char path[256], **names = NULL;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/%s/checkpoints", work, name);
    assert_int_equal(kiln_dir_list(path, &names, &n, NULL), KILN_OK);
    list[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof(lists[0]) - strlen(list), "%s%s", i > 0 ? " " : "",
                 names[i]);
    kiln_names_free(names, n);
    return list;
}

static json_t *state_of(const char *checkpoint)
{
    size_t size;
    char path[256], *text;

    snprintf(path, sizeof(path), "%s/state.json", checkpoint);
    text = read_work(path, &size);
    json_t *state = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(state);
    return state;
}

/* ---- Tests -------------------------------------------------------------------------- */

static void test_two_owners_of_one_folder(void **unused)
{
    (void)unused;
    extra_components = savers;
    fit_well("run", ONE("every:5,keep:2") TWO("every:3,keep:2"), "finished");
    /* a: 10, 15; b: 12, 15; the last is a's and b's */
    assert_string_equal(folders("run"),
                        "epoch=001-step=10 epoch=002-step=12 epoch=002-step=15 last");
    json_t *state = state_of("run/checkpoints/last");
    const json_t *by = json_object_get(state, "saved_by");
    assert_int_equal(json_array_size(by), 2);
    assert_string_equal(json_string_value(json_array_get(by, 1)), "callbacks.b");
    /* It was taken when both had been heard: each knows that it saved. */
    const json_t *callbacks = json_object_get(state, "callbacks");
    for (int i = 0; i < 2; i++)
        assert_string_equal(
            json_string_value(json_object_get(
                json_object_get(callbacks, i == 0 ? "callbacks.a" : "callbacks.b"), "name_1")),
            "epoch=002-step=15");
    json_decref(state);
    fit_well("drop", ONE("every:15,keep:1") TWO("every:3,keep:1"), "finished");
    assert_string_equal(folders("drop"), "epoch=002-step=15 last");
    /* What nobody keeps, and no link holds, is not made. */
    fit_well("none", ONE("every:4,keep:0"), "finished");
    assert_string_equal(folders("none"), "epoch=002-step=15 last");
}

static void test_state_comes_back(void **unused)
{
    char overrides[512];

    (void)unused;
    extra_components = savers;
    fit_well("whole", ONE("every:2,keep:3") TWO("every:5"), "finished");
    const SaverState whole = seen;
    assert_int_equal(whole.bytes[4], 15);
    for (int step = 1; step < 15; step += 3) {
        char name[32];

        snprintf(name, sizeof(name), "cut%d", step);
        recorder.stop_at = step;
        fit_well(name, ONE("every:2,keep:3") TWO("every:5"), "interrupted");
        recorder.stop_at = 0;
        snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/%s",
                 ONE("every:2,keep:3") TWO("every:5"), work, name);
        fit_well(name, overrides, "finished");
        assert_memory_equal(&seen.sums, &whole.sums, sizeof(whole.sums));
        assert_memory_equal(&seen.bytes, &whole.bytes, sizeof(whole.bytes));
        assert_string_equal(folders(name), folders("whole"));
        snprintf(overrides, sizeof(overrides), "%s/checkpoints/last/callbacks.a.txt", name);
        assert_same_file("whole/checkpoints/last/callbacks.a.txt", overrides);
        snprintf(overrides, sizeof(overrides), "%s/checkpoints/last/state.json", name);
        assert_same_file("whole/checkpoints/last/state.json", overrides);
    }
}

static void test_weights_alone(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };
    char overrides[512];

    (void)unused;
    extra_components = savers;
    fit_well("run", ONE("every:5,keep:1,weights_only:true") TWO("every:3,keep:1"), "finished");
    fit_well("thin", ONE("every:4,keep:1,weights_only:true"), "finished");
    assert_true(exists("run/checkpoints/epoch=002-step=15/trainer.safetensors")); /* whole for b */
    assert_false(exists("thin/checkpoints/epoch=002-step=12/trainer.safetensors"));
    assert_true(exists("thin/checkpoints/epoch=002-step=12/model.safetensors"));
    assert_true(exists("thin/checkpoints/last/trainer.safetensors")); /* the run's own */
    snprintf(overrides, sizeof(overrides), "ckpt_path=%s/thin/checkpoints/epoch=002-step=12", work);
    assert_int_equal(fit("on", overrides, &result, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "only weights"));
    assert_false(exists("on"));
}

static void test_owners_prune_leftover_checkpoints(void **unused)
{
    const char *options = ONE("every:5,keep:1");
    char overrides[512], from[256], to[256];

    (void)unused;
    extra_components = savers;
    recorder.stop_at = 7;
    fit_well("run", options, "interrupted");
    recorder.stop_at = 0;
    /* As a kill may leave it: a folder that a published, and halves; and what others put there. */
    snprintf(from, sizeof(from), "%s/run/checkpoints/epoch=000-step=5", work);
    for (int i = 0; i < 2; i++) {
        snprintf(to, sizeof(to), "%s/run/checkpoints/%s", work, i == 0 ? "mine" : ".removed");
        assert_int_equal(kiln_checkpoint_clone(from, to, true, NULL), KILN_OK);
    }
    fit_well("other", ONE("every:1,keep:8"), "finished");
    snprintf(from, sizeof(from), "%s/other/checkpoints/epoch=001-step=9", work);
    snprintf(to, sizeof(to), "%s/run/checkpoints/epoch=001-step=9", work);
    assert_int_equal(kiln_checkpoint_clone(from, to, true, NULL), KILN_OK);
    snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/run", options, work);
    fit_well("run", overrides, "finished");
    assert_string_equal(folders("run"), "epoch=002-step=15 last mine");
    /* An owner that does not prune keeps its checkpoints; 15 was held by `last` alone. */
    fit_well("lax", ONE("every:1,keep:8"), "finished");
    snprintf(overrides, sizeof(overrides),
             "%s trainer.max_steps=11 ckpt_path=%s/lax/checkpoints/epoch=001-step=10",
             ONE("every:1,keep:8,tidies:false"), work);
    fit_well("lax", overrides, "finished");
    assert_string_equal(folders("lax"),
                        "epoch=001-step=10 epoch=001-step=8 epoch=001-step=9 epoch=002-step=11 "
                        "epoch=002-step=12 epoch=002-step=13 epoch=002-step=14 last");
}

static void test_damaged_files_of_components(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };
    char overrides[512];

    (void)unused;
    extra_components = savers;
    fit_well("run", ONE("every:5,keep:1"), "finished");
    snprintf(overrides, sizeof(overrides), "%s/run/checkpoints/last/callbacks.a.txt", work);
    assert_int_equal(kiln_file_write_plain(overrides, "after 14", NULL), KILN_OK);
    snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/run", ONE("every:5,keep:1"), work);
    assert_int_equal(fit("on", overrides, &result, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "callbacks.a.txt: is damaged"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_two_owners_of_one_folder),
        RUN_TEST(test_state_comes_back),
        RUN_TEST(test_weights_alone),
        RUN_TEST(test_owners_prune_leftover_checkpoints),
        RUN_TEST(test_damaged_files_of_components),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
