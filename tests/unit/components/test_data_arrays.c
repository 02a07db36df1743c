/* The datamodule arrays: samples, splits, scaling, tables, raw samples, and what it refuses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

enum { N = 20, LONGEST = 4, IDS = 5 };

static const char *const names[] = { "no", "yes" };
static const KilnRowColumn columns[] = { { .name = "age" }, { .name = "income" } };
static const KilnFeature features[] = {
    { .name = "row", .content = KILN_ROW, .shape = { 1, { 2 } }, .columns = columns },
    { .name = "words",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .shape = { 1, { LONGEST } },
      .varies = true,
      .n_ids = IDS },
    { .name = "note", .content = KILN_TEXT },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
};
enum { ROW, WORDS, NOTE, LABEL, FEATURES };

/* Arrays of the program, of other types than the features. */
static double rows[N][2];
static int64_t words[N * LONGEST], lengths[N];
static const char *notes[N];
static uint8_t labels[N];

static const KilnArray all[FEATURES] = {
    { .name = "row", .dtype = KILN_F64, .data = rows },
    { .name = "words", .dtype = KILN_I64, .data = words, .lengths = lengths },
    { .name = "note", .data = notes },
    { .name = "label", .dtype = KILN_U8, .data = labels },
};

static KilnMemoryData data_of(const KilnArray *arrays, size_t n_arrays)
{
    return (KilnMemoryData) {
        .spec = { .features = features,
                  .n_features = FEATURES,
                  .n_classes = 2,
                  .class_names = names },
        .sets = { [KILN_TRAIN] = { .n = N, .arrays = arrays, .n_arrays = n_arrays } },
    };
}

static int begin(void **unused)
{
    int64_t at = 0;

    for (int i = 0; i < N; i++) {
        rows[i][0] = 10.0 + i;
        rows[i][1] = i % 3 == 0 ? -1.0 : 2.5;
        lengths[i] = 1 + i % LONGEST;
        for (int64_t j = 0; j < lengths[i]; j++)
            words[at++] = (i + j) % IDS;
        notes[i] = i % 2 == 0 ? "even" : NULL;
        labels[i] = (uint8_t)(i % 2);
    }
    return fixture_begin(unused);
}

static KilnStatus open_arrays(const char *options, const KilnDataContext *context, Built *built,
                              KilnError *err)
{
    return open_data("arrays", options, context, built, err);
}

static void open_well(const char *options, const KilnDataContext *context, Built *built)
{
    KilnError err = { 0 };

    if (open_arrays(options, context, built, &err) < 0)
        fail_msg("%s", err.text);
}

/* Room for one sample, and the sample. */
typedef struct Room {
    float row[2];
    int32_t words[LONGEST], label;
    char *note;
    void *data[FEATURES];
    int64_t lengths[FEATURES];
    KilnSample sample;
} Room;

static void clear(Room *room)
{
    *room = (Room) { .label = -7 };
    room->data[ROW] = room->row;
    room->data[WORDS] = room->words;
    room->data[NOTE] = &room->note;
    room->data[LABEL] = &room->label;
    room->sample = (KilnSample) { .data = room->data, .lengths = room->lengths };
}

static void get(const KilnDataset *dataset, int64_t i, Room *room)
{
    KilnError err = { 0 };
    KilnRng rng;

    clear(room);
    kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, (uint64_t)i);
    dataset->lengths(dataset->ctx, i, room->lengths);
    if (dataset->get(dataset->ctx, i, &rng, &room->sample, &err) < 0)
        fail_msg("%s", err.text);
}

/* The number of the sample that a set's sample is. */
static int number_of(const Room *room)
{
    return (int)lround(room->row[0] - 10.0);
}

static void test_samples(void **unused)
{
    const KilnMemoryData data = data_of(all, FEATURES);
    const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &data };
    bool seen[N] = { false };
    Built built;
    Room room;

    (void)unused;
    open_well("val_fraction: 0.25", &fit, &built);
    assert_int_equal(open_split(&built, KILN_TRAIN).count, 15);
    assert_int_equal(open_split(&built, KILN_VAL).count, 5);
    assert_int_equal(open_split(&built, KILN_TEST).count, 0);
    for (int split = KILN_TRAIN; split <= KILN_VAL; split++) {
        const KilnDataset set = open_split(&built, (KilnSplit)split);

        for (int64_t i = 0; i < set.count; i++) {
            get(&set, i, &room);
            const int n = number_of(&room);

            assert_false(seen[n]);
            seen[n] = true;
            assert_true(room.row[1] == (n % 3 == 0 ? -1.0f : 2.5f));
            assert_int_equal(room.lengths[WORDS], 1 + n % LONGEST);
            for (int64_t j = 0; j < room.lengths[WORDS]; j++)
                assert_int_equal(room.words[j], (n + j) % IDS);
            assert_int_equal(room.label, n % 2);
            assert_int_equal(set.label(set.ctx, i), n % 2);
            assert_int_equal(room.note != NULL, n % 2 == 0);
            free(room.note);
        }
    }
    built_free(&built);
}

/* Own validation arrays leave the training set whole; labels and texts may be absent. */
static void test_sets(void **unused)
{
    KilnMemoryData data = data_of(all, FEATURES);
    const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &data };
    Built built;
    Room room;

    (void)unused;
    data.sets[KILN_VAL] = (KilnArraySet) { .n = 3, .arrays = all, .n_arrays = FEATURES };
    data.sets[KILN_TEST] = (KilnArraySet) { .n = 2, .arrays = all, .n_arrays = 2 };
    open_well("", &fit, &built);
    assert_int_equal(open_split(&built, KILN_TRAIN).count, N);
    assert_int_equal(open_split(&built, KILN_VAL).count, 3);
    const KilnDataset test = open_split(&built, KILN_TEST);
    assert_int_equal(test.count, 2);
    assert_true(kiln_dataset_has(&test, "row") && !kiln_dataset_has(&test, "label"));
    assert_false(kiln_dataset_has(&test, "note"));
    assert_null(test.label);
    get(&test, 1, &room);
    assert_int_equal(number_of(&room), 1);
    assert_int_equal(room.label, -7);
    built_free(&built);
}

static void test_refusals(void **unused)
{
    static const KilnArray array_row = { .name = "row", .dtype = KILN_F64, .data = rows };
    static const int64_t bad_words[N * LONGEST] = { 0, 1, 9 }, bad_lengths[N] = { 1, 2, 5 };
    static const int32_t bad_labels[N] = { 0, 1, 0, 2 }, ignored[N] = { 0, -1 };
    static const float half_labels[N] = { 0.0f, 0.5f };
    const struct {
        KilnArray array; /* instead of the one of its name, or in addition */
        KilnStatus status;
        const char *message;
    } cases[] = {
        { { .name = "label", .dtype = KILN_I32, .data = ignored }, KILN_OK, "" },
        { { .name = "label", .dtype = KILN_I32, .data = bad_labels },
          KILN_E_RANGE,
          "array \"label\" of the train set: sample 3: id 2; expected 0 to 1" },
        { { .name = "label", .dtype = KILN_F32, .data = half_labels },
          KILN_E_RANGE,
          "sample 1: label: element 0 is 0.5, which is no i32" },
        { { .name = "words", .dtype = KILN_I64, .data = bad_words, .lengths = lengths },
          KILN_E_RANGE,
          "array \"words\" of the train set: sample 1: id 9; expected 0 to 4" },
        { { .name = "words", .dtype = KILN_I64, .data = words, .lengths = bad_lengths },
          KILN_E_SHAPE,
          "sample 2 has length 5; expected 1 to 4" },
        { { .name = "words", .dtype = KILN_I64, .data = words },
          KILN_E_SHAPE,
          "it has no lengths, but its feature varies" },
        { { .name = "row", .dtype = KILN_F64, .data = rows, .lengths = lengths },
          KILN_E_SHAPE,
          "it has lengths, but its feature does not vary" },
        { { .name = "row", .dtype = KILN_F64 }, KILN_E_MISSING, "its data is NULL" },
        { { .name = "age", .dtype = KILN_F64, .data = rows },
          KILN_E_KEY,
          "array \"age\" of the train set: no feature has this name" },
    };
    const KilnArray missing[] = { array_row }, twice[] = { array_row, array_row };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases) + 2; i++) {
        KilnArray arrays[FEATURES + 1];
        KilnMemoryData data = data_of(arrays, FEATURES);
        const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &data };
        KilnError err = { 0 };
        const char *message = "array \"words\" of the train set: it is missing";
        KilnStatus want = KILN_E_MISSING;
        Built built;

        memcpy(arrays, all, sizeof(all));
        if (i < KILN_COUNT(cases)) {
            size_t at = 0;

            while (at < FEATURES && strcmp(all[at].name, cases[i].array.name) != 0)
                at++;
            arrays[at] = cases[i].array;
            data.sets[KILN_TRAIN].n_arrays = at < FEATURES ? FEATURES : FEATURES + 1;
            message = cases[i].message;
            want = cases[i].status;
        } else {
            const bool both = i > KILN_COUNT(cases);

            data.sets[KILN_TRAIN].arrays = both ? twice : missing;
            data.sets[KILN_TRAIN].n_arrays = both ? 2 : 1;
            message = both ? "array \"row\" of the train set: it is given twice" : message;
            want = both ? KILN_E_KEY : want;
        }
        KilnStatus got = open_arrays("", &fit, &built, &err);
        if (got != want || strstr(err.text, message) == NULL)
            fail_msg("case %zu: %d: %s", i, got, err.text);
        if (got >= 0)
            built_free(&built);
    }
}

static void test_labels_are_finite(void **unused)
{
    static const float x[4] = { 1.0f, 2.0f, 3.0f, 4.0f }, y[4] = { 1.0f, NAN, 0.0f, 0.0f };
    static const KilnFeature regression[] = {
        { .name = "x", .content = KILN_VECTOR, .shape = { 1, { 1 } } },
        { .name = "y", .content = KILN_LABEL },
    };
    static const KilnArray arrays[] = { { .name = "x", .data = x }, { .name = "y", .data = y } };
    const KilnMemoryData data = {
        .spec = { .features = regression, .n_features = 2 },
        .sets = { { .n = 4, .arrays = arrays, .n_arrays = 2 } },
    };
    const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .data = &data };
    KilnError err = { 0 };
    Built built;

    (void)unused;
    assert_int_equal(open_arrays("", &fit, &built, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "array \"y\" of the train set: sample 1: the label is nan"));
}

static void test_no_data(void **unused)
{
    const KilnDataContext fit = { .stage = KILN_STAGE_FIT };
    KilnError err = { 0 };
    Built built;

    (void)unused;
    assert_int_equal(open_arrays("", &fit, &built, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "set KilnRunEnv.data, or use another datamodule"));
}

/* ---- Scaling and raw samples -------------------------------------------------------- */

static KilnStatus preprocess(const Built *built, const float *row, const KilnShape *shape,
                             int32_t id, Room *room, KilnError *err)
{
    const int32_t ids[] = { 0, 1, id };
    const KilnRawValue values[] = {
        { .name = "row", .type = KILN_RAW_ARRAY, .dtype = KILN_F32, .data = row, .shape = *shape },
        { .name = "words",
          .type = KILN_RAW_ARRAY,
          .dtype = KILN_I32,
          .data = ids,
          .shape = KILN_SHAPE(3) },
        { .name = "note", .type = KILN_RAW_TEXT, .text = "hello" },
    };

    clear(room);
    room->data[LABEL] = NULL;
    return data_ops(built)->preprocess(built->instance, values, &room->sample, err);
}

/* `samples`: there are some to compare with. */
static void check_raw(const Built *built, bool samples)
{
    const KilnShape shape = KILN_SHAPE(2), wrong = KILN_SHAPE(3);
    static const float row[] = { 13.0f, -1.0f, 0.0f };
    const KilnRawField *fields = NULL;
    KilnError err = { 0 };
    Room room, sample;

    assert_int_equal(data_ops(built)->raw_fields(built->instance, &fields), 3);
    assert_string_equal(fields[0].name, "row");
    assert_string_equal(fields[0].help, "f32 [2]");
    assert_string_equal(fields[1].help, "at most i32 [4]");
    assert_true(fields[2].types == KILN_RAW_TEXT && fields[2].optional);
    assert_int_equal(preprocess(built, row, &shape, 4, &room, &err), KILN_OK);
    assert_int_equal(room.lengths[WORDS], 3);
    assert_int_equal(room.words[2], 4);
    assert_string_equal(room.note, "hello");
    free(room.note);
    const KilnDataset train = samples ? open_split(built, KILN_TRAIN) : (KilnDataset) { 0 };
    for (int64_t i = 0; i < train.count; i++) { /* as the sample of that row in a set */
        get(&train, i, &sample);
        free(sample.note);
        if (sample.label == 1 && sample.row[0] == room.row[0])
            assert_true(sample.row[1] == room.row[1]);
    }
    assert_int_equal(preprocess(built, row, &wrong, 4, &room, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "array \"row\" is [3]; expected [2]"));
    assert_int_equal(preprocess(built, row, &shape, IDS, &room, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "array \"words\": id 5; expected 0 to 4"));
}

/* The columns have mean 0 and deviation 1 over the training samples, without those held out; what
 * was fitted is read again, not fitted to other data. */
static void test_standardize(void **unused)
{
    const KilnMemoryData data = data_of(all, FEATURES);
    KilnMemoryData other = data_of(all, FEATURES);
    const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &data };
    KilnDataContext resume = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &other };
    double sum[2] = { 0.0 }, squares[2] = { 0.0 };
    KilnError err = { 0 };
    Built built, again;
    Room room, same;

    (void)unused;
    open_well("standardize: true, val_fraction: 0.5", &fit, &built);
    const KilnDataset train = open_split(&built, KILN_TRAIN);
    for (int64_t i = 0; i < train.count; i++) {
        get(&train, i, &room);
        free(room.note);
        for (int c = 0; c < 2; c++) {
            sum[c] += (double)room.row[c];
            squares[c] += (double)room.row[c] * (double)room.row[c];
        }
    }
    for (int c = 0; c < 2; c++) {
        assert_true(fabs(sum[c]) < 1e-5);
        assert_true(fabs(squares[c] / (double)train.count - 1.0) < 1e-5);
    }
    check_raw(&built, true);
    fixture_put("fitted/x", "", 0);
    assert_int_equal(
        data_ops(&built)->save_preprocessing(built.instance, fixture_path("fitted"), &err),
        KILN_OK);
    other.sets[KILN_TRAIN].n = N / 2;
    resume.fitted = fixture_path("fitted");
    open_well("standardize: true, val_fraction: 0.0", &resume, &again);
    for (int64_t i = 0; i < N / 2; i++) {
        const KilnDataset half = open_split(&again, KILN_TRAIN);

        get(&half, i, &room);
        free(room.note);
        for (int64_t j = 0; j < train.count; j++) {
            get(&train, j, &same);
            free(same.note);
            if (memcmp(same.words, room.words, sizeof(room.words)) == 0 &&
                same.row[1] == room.row[1] && fabsf(same.row[0] - room.row[0]) < 1e-3f)
                assert_memory_equal(same.row, room.row, sizeof(room.row));
        }
    }
    built_free(&built);
    built_free(&again);
}

static void test_standardize_refusals(void **unused)
{
    const KilnMemoryData data = data_of(all, FEATURES);
    KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &data };
    KilnError err = { 0 };
    Built built;

    (void)unused;
    rows[4][1] = NAN;
    KilnStatus got = open_arrays("standardize: true, val_fraction: 0.0", &context, &built, &err);
    rows[4][1] = 2.5;
    assert_int_equal(got, KILN_E_RANGE);
    assert_non_null(
        strstr(err.text, "column income of feature \"row\" is nan in training sample 4"));
    context.stage = KILN_STAGE_TEST;
    assert_int_equal(open_arrays("standardize: true", &context, &built, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "use datamodule.standardize=false"));
    context.fitted = fixture_path("nowhere");
    assert_int_equal(open_arrays("standardize: true", &context, &built, &err), KILN_E_IO);
}

static void test_predict(void **unused)
{
    const KilnDataSpec spec = {
        .features = features, .n_features = FEATURES, .n_classes = 2, .class_names = names
    };
    const KilnDataContext context = { .stage = KILN_STAGE_PREDICT, .remembered = &spec };
    Built built;

    (void)unused;
    open_well("", &context, &built);
    check_raw(&built, false);
    built_free(&built);
}

/* ---- Tables ------------------------------------------------------------------------- */

static void test_table(void **unused)
{
    const KilnMemoryData data = data_of(all, FEATURES);
    const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1, .data = &data };
    KilnTable table, again;
    KilnError err = { 0 };
    Built built;

    (void)unused;
    open_well("val_fraction: 0.0", &fit, &built);
    assert_int_equal(data_ops(&built)->table(built.instance, KILN_TRAIN, 0, &table, &err), KILN_OK);
    assert_int_equal(table.n_rows, N);
    assert_int_equal(table.n_columns, 4); /* without the words, which vary */
    assert_string_equal(table.columns[0].name, "age");
    assert_string_equal(table.columns[1].name, "income");
    assert_string_equal(table.columns[2].name, "note");
    assert_string_equal(table.columns[3].name, "label");
    assert_int_equal(table.label, 3);
    for (int i = 0; i < N; i++) {
        assert_true(((const float *)table.columns[0].data)[i] == (float)rows[i][0]);
        assert_true(((const float *)table.columns[1].data)[i] == (float)rows[i][1]);
        assert_int_equal(((const int32_t *)table.columns[3].data)[i], labels[i]);
        if (notes[i] != NULL)
            assert_string_equal(table.columns[2].texts[i], notes[i]);
        else
            assert_null(table.columns[2].texts[i]);
    }
    assert_int_equal(data_ops(&built)->table(built.instance, KILN_TRAIN, 0, &again, &err), KILN_OK);
    assert_ptr_equal(again.columns, table.columns);
    assert_int_equal(data_ops(&built)->table(built.instance, KILN_TEST, 0, &table, &err), KILN_OK);
    assert_int_equal(table.n_rows, 0);
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_labels_are_finite),
        cmocka_unit_test(test_no_data),
        cmocka_unit_test(test_standardize),
        cmocka_unit_test(test_standardize_refusals),
        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, begin, fixture_end);
}
