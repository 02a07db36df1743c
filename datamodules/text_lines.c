/* Lines of text that the program draws in the system's fonts, with other fonts for validation and
 * test than for training. Sample i of a split is the same in every epoch. */
#include "kiln.h"
#include "kiln/images/line_images.h"
#include "kiln/plot.h"
#include "kiln/tools/text_words.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 24, MAX_TEXT = 512, MAX_FAMILY = 128 };

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    KILN_LINE_OPTIONS;
    char **fonts, **val_fonts, **test_fonts, *words;
    size_t fonts_count, val_fonts_count, test_fonts_count;
    int64_t train_count, val_count, test_count, max_words;
    double min_size, max_size, stretch, rotation, slant, blur, noise, contrast;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "32"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_LINE_FIELDS(Opts),
    KILN_FIELD_STR_LIST(Opts, fonts, "[DejaVu Sans, DejaVu Serif]",
                        "fonts of the training lines: families (`fc-list : family` lists those of "
                        "the system), each alone or with :bold, :italic or :bold:italic"),
    KILN_FIELD_STR_LIST(Opts, val_fonts, "[DejaVu Sans Mono]", "fonts of the validation lines"),
    KILN_FIELD_STR_LIST(Opts, test_fonts, "[\"DejaVu Sans Mono:bold\"]", "fonts of the test lines"),
    KILN_FIELD_PATH_OPT(Opts, words, "null",
                        "a text file whose words the lines have, each drawn by chance; words that "
                        "are longer than 24 characters, or not all printable ASCII, are left out. "
                        "null: letters and digits by chance"),
    KILN_FIELD_I64(Opts, train_count, "8000", 1, 1e9, "lines of the training split"),
    KILN_FIELD_I64(Opts, val_count, "500", 0, 1e9, "lines of the validation split"),
    KILN_FIELD_I64(Opts, test_count, "500", 0, 1e9, "lines of the test split"),
    KILN_FIELD_I64(Opts, max_words, "3", 1, 16,
                   "most words of a line, each has 1 to so many; if a line is wider than "
                   "max_width, it gets fewer"),
    KILN_FIELD_F64(Opts, min_size, "18.0", 4.0, 512.0, "smallest size of a font, pixels"),
    KILN_FIELD_F64(Opts, max_size, "24.0", 4.0, 512.0, "largest size of a font, pixels"),
    KILN_FIELD_F64(Opts, stretch, "0.2", 0.0, 0.9,
                   "most that letters are wider or narrower, as a share of their width"),
    KILN_FIELD_F64(Opts, rotation, "1.0", 0.0, 20.0, "most degrees that a line is rotated by"),
    KILN_FIELD_F64(Opts, slant, "0.2", 0.0, 1.0,
                   "most that letters lean to either side: columns per row"),
    KILN_FIELD_F64(Opts, blur, "0.3", 0.0, 1.0,
                   "largest share of a pixel that is spread over its four neighbours"),
    KILN_FIELD_F64(Opts, contrast, "0.6", 0.05, 1.0,
                   "least difference of ink and paper; ink is at most 1, paper at least 0"),
    KILN_FIELD_F64(Opts, noise, "0.05", 0.0, 1.0,
                   "largest standard deviation of normal noise on each pixel"),
    KILN_FIELD_END,
};

typedef struct State State;

/* The lines of a split. */
typedef struct Samples {
    State *state;
    KilnSplit split;
    int32_t (*lengths)[2]; /* [count]: pixels, characters; NULL: not known yet */
} Samples;

struct State {
    KilnLineImages lines;
    const Opts *opts;
    KilnText text;  /* the words of the file, one after the other, each with its NUL */
    size_t *starts; /* of each word */
    size_t n_words, capacity;
    int64_t left_out; /* words that can't be drawn */
    char *odd;        /* the first of them */
    uint64_t seed;
    const KilnPoll *poll;
    Samples samples[KILN_SPLIT_COUNT];
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* ---- Options ----------------------------------------------------------------------------------
 */

/* The fonts of a split, and how many lines it has. */
typedef struct Fonts {
    const char *option;
    char *const *list;
    size_t n;
    int64_t lines;
} Fonts;

static Fonts fonts_of(const Opts *opts, KilnSplit split)
{
    const Fonts all[KILN_SPLIT_COUNT] = {
        [KILN_TRAIN] = { "fonts", opts->fonts, opts->fonts_count, opts->train_count },
        [KILN_VAL] = { "val_fonts", opts->val_fonts, opts->val_fonts_count, opts->val_count },
        [KILN_TEST] = { "test_fonts", opts->test_fonts, opts->test_fonts_count, opts->test_count },
    };

    return all[split];
}

/* Read "family:bold:italic" into `ret`; `family` has room for the name. */
static KilnStatus parse_font(const char *font, char family[MAX_FAMILY], KilnPlotText *ret,
                             KilnError *err)
{
    const size_t n = strcspn(font, ":");
    const char *style = font + n;

    if (n == 0 || n >= MAX_FAMILY)
        return kiln_error_set(err, KILN_E_RANGE, "\"%.64s\" is not the name of a font", font);
    memcpy(family, font, n);
    family[n] = '\0';
    ret->family = family;
    ret->bold = strcmp(style, ":bold") == 0 || strcmp(style, ":bold:italic") == 0;
    ret->italic = strcmp(style, ":italic") == 0 || strcmp(style, ":bold:italic") == 0;
    return style[0] == '\0' || ret->bold || ret->italic
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE,
                                "\"%.64s\": expected a family, or one with :bold, :italic or "
                                ":bold:italic",
                                font);
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const Fonts fonts = fonts_of(opts, (KilnSplit)split);
        char family[MAX_FAMILY];
        KilnPlotText line;

        *ret_option = fonts.option;
        if (fonts.n == 0 && fonts.lines > 0)
            return kiln_error_set(err, KILN_E_RANGE, "expected at least one font");
        for (size_t i = 0; i < fonts.n; i++)
            if (parse_font(fonts.list[i], family, &line, err) < 0)
                return KILN_E_RANGE;
    }
    *ret_option = "min_size";
    return opts->min_size <= opts->max_size
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected at most max_size (%g), got %g",
                                opts->max_size, opts->min_size);
}

/* Whether the system has the fonts of a split that has lines. */
static KilnStatus check_fonts(const Fonts *fonts, KilnError *err)
{
    char family[MAX_FAMILY];
    KilnPlotText line;

    for (size_t i = 0; i < fonts->n && fonts->lines > 0; i++)
        if (parse_font(fonts->list[i], family, &line, err) < 0 ||
            kiln_plot_font_check(family, err) < 0)
            return kiln_error_prefix(err, "%s: ", fonts->option);
    return KILN_OK;
}

/* ---- Words ------------------------------------------------------------------------------------
 */

/* Keep a word, or count it among those that can't be drawn. */
static KilnStatus add_word(State *state, KilnString word, KilnError *err)
{
    size_t n = 0;

    while (n < word.length && word.data[n] > ' ' && word.data[n] <= '~')
        n++;
    if (n < word.length || n > MAX_WORD) {
        if (state->left_out++ == 0)
            state->odd = strndup(word.data, word.length < 64 ? word.length : 64);
        return KILN_OK;
    }
    if (!KILN_RESERVE(state->starts, state->capacity, state->n_words + 1))
        return kiln_error_nomem(err, state->n_words * sizeof(*state->starts));
    state->starts[state->n_words++] = state->text.length;
    kiln_text_append_n(&state->text, word.data, n);
    kiln_text_char(&state->text, '\0');
    return state->text.failed ? kiln_error_nomem(err, state->text.length)
                              : kiln_line_images_collect(&state->lines, word, err);
}

static KilnStatus read_words(State *state, KilnRecords *rows, KilnError *err)
{
    static const size_t text_column[] = { 0 };
    const int64_t n = kiln_records_count(rows);
    KilnRecord row = { 0 };
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < n && status >= 0; i++) {
        KilnString word;

        status = kiln_poll_check(state->poll, "reading words", i, n, err);
        if (status >= 0)
            status = kiln_records_read(rows, i, text_column, 1, &row, err);
        while (status >= 0 && kiln_value_next_item(&row.fields[0], false, &word))
            status = add_word(state, word, err);
    }
    kiln_record_release(&row);
    return status;
}

static KilnStatus open_words(State *state, const char *path, KilnError *err)
{
    const char *const paths[] = { path };
    const KilnRecordsSpec spec = {
        .paths = paths, .n_paths = 1, .format = KILN_RECORDS_LINES, .poll = state->poll
    };
    KilnRecords *rows = NULL;
    KilnStatus status = kiln_records_open(&spec, &rows, err);

    if (status >= 0)
        status = read_words(state, rows, err);
    kiln_records_close(rows);
    if (status >= 0 && state->n_words == 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s has no word of 1 to %d printable ASCII characters", path,
                                (int)MAX_WORD);
    return status < 0 ? kiln_error_prefix(err, "words: ") : status;
}

/* ---- Setup ------------------------------------------------------------------------------------
 */

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)err;
    state->opts = opts;
    kiln_line_images_init(&state->lines, opts->height, opts->max_width);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts;
    const bool draws = context->stage != KILN_STAGE_PREDICT;
    KilnStatus status = kiln_line_images_open(&state->lines, context, err);

    state->seed = context->seed;
    state->poll = context->poll;
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0 && draws; split++) {
        const Fonts fonts = fonts_of(opts, (KilnSplit)split);

        status = check_fonts(&fonts, err);
    }
    if (status >= 0)
        status = kiln_line_images_collect(&state->lines, (KilnString) { " ", 1 }, err);
    if (status >= 0 && opts->words == NULL)
        status = kiln_line_images_collect(&state->lines,
                                          (KilnString) { letters, sizeof(letters) - 1 }, err);
    else if (status >= 0 && draws)
        status = open_words(state, opts->words, err);
    return status >= 0 ? kiln_line_images_ready(&state->lines, err) : status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        free(state->samples[split].lengths);
    kiln_text_release(&state->text);
    free(state->starts);
    free(state->odd);
    kiln_line_images_release(&state->lines);
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

/* Write a word to `to`, without a NUL; returns its length. */
static size_t draw_word(const State *state, KilnRng *rng, char *to)
{
    if (state->n_words > 0) {
        const char *word = state->text.data +
                           state->starts[kiln_rng_below(rng, (uint32_t)state->n_words)];

        memcpy(to, word, strlen(word));
        return strlen(word);
    }
    const size_t n = 1 + kiln_rng_below(rng, 10);
    for (size_t i = 0; i < n; i++)
        to[i] = letters[kiln_rng_below(rng, sizeof(letters) - 1)];
    return n;
}

static void draw_text(const State *state, KilnRng *rng, char text[MAX_TEXT])
{
    const uint32_t words = 1 + kiln_rng_below(rng, (uint32_t)state->opts->max_words);
    size_t n = 0;

    for (uint32_t w = 0; w < words; w++) {
        if (w > 0)
            text[n++] = ' ';
        n += draw_word(state, rng, text + n);
    }
    text[n] = '\0';
}

/* Leave out the last word, or of a single one its second half; false: one character is left. */
static bool shorten(char *text)
{
    char *end = strrchr(text, ' ');
    const size_t n = strlen(text);

    if (end == NULL && n < 2)
        return false;
    *(end != NULL ? end : text + n / 2) = '\0';
    return true;
}

/* What line `index` is and how wide, without drawing it. */
typedef struct Plan {
    char text[MAX_TEXT], family[MAX_FAMILY];
    KilnPlotText line; /* points into the plan */
    int width;
    KilnRng rng; /* for what comes after */
} Plan;

static KilnStatus plan_line(const Samples *samples, int64_t index, Plan *ret, KilnError *err)
{
    const State *state = samples->state;
    const Opts *opts = state->opts;
    const Fonts fonts = fonts_of(opts, samples->split);
    KilnRng *rng = &ret->rng;

    kiln_rng_init(rng, state->seed, KILN_RNG_DATA, (uint32_t)samples->split, (uint64_t)index);
    ret->line = (KilnPlotText) { .text = ret->text };
    KilnStatus status = parse_font(fonts.list[kiln_rng_below(rng, (uint32_t)fonts.n)], ret->family,
                                   &ret->line, err);
    if (status < 0)
        return status;
    draw_text(state, rng, ret->text);
    ret->line.size = (double)kiln_rng_range(rng, (float)opts->min_size, (float)opts->max_size);
    ret->line.stretch = 1.0 +
                        (double)kiln_rng_range(rng, (float)-opts->stretch, (float)opts->stretch);
    ret->line.rotation = (double)kiln_rng_range(rng, (float)-opts->rotation, (float)opts->rotation);
    ret->line.slant = (double)kiln_rng_range(rng, (float)-opts->slant, (float)opts->slant);
    do
        status = kiln_plot_text_line(&ret->line, (int)opts->height, (int)opts->max_width, NULL,
                                     &ret->width, err);
    while (status >= 0 && ret->width > opts->max_width && shorten(ret->text));
    return status < 0 || ret->width <= opts->max_width
               ? status
               : kiln_error_set(err, KILN_E_RANGE,
                                "max_size: one character of %g pixels is wider than max_width "
                                "(%lld)",
                                ret->line.size, (long long)opts->max_width);
}

/* Pixels as columns, with blur, contrast and noise. */
static void develop(const Opts *opts, const uint8_t *pixels, int64_t width, KilnRng *rng, float *to)
{
    const float blur = kiln_rng_range(rng, 0.0f, (float)opts->blur) / 4.0f;
    const float contrast = kiln_rng_range(rng, (float)opts->contrast, 1.0f) / 255.0f;
    const float paper = kiln_rng_range(rng, 0.0f, 1.0f - 255.0f * contrast);
    const float noise = kiln_rng_range(rng, 0.0f, (float)opts->noise);
    const int64_t stride = opts->max_width, height = opts->height;

    for (int64_t x = 0; x < width; x++)
        for (int64_t y = 0; y < height; y++) {
            const uint8_t *at = pixels + y * stride + x;
            const float around = (float)((x > 0 ? at[-1] : 0) + (x + 1 < stride ? at[1] : 0) +
                                         (y > 0 ? at[-stride] : 0) +
                                         (y + 1 < height ? at[stride] : 0));
            const float ink = (float)at[0] * (1.0f - 4.0f * blur) + around * blur;

            to[x * height + y] = paper + contrast * ink;
            if (noise > 0.0f)
                to[x * height + y] += noise * kiln_rng_normal(rng);
        }
}

static KilnStatus draw_line(const Opts *opts, Plan *plan, float *to, KilnError *err)
{
    const size_t n = (size_t)(opts->height * opts->max_width);
    uint8_t *pixels = malloc(n);
    KilnStatus status = pixels != NULL ? KILN_OK : kiln_error_nomem(err, n);

    if (status >= 0)
        status = kiln_plot_text_line(&plan->line, (int)opts->height, (int)opts->max_width, pixels,
                                     &plan->width, err);
    if (status >= 0)
        develop(opts, pixels, plan->width, &plan->rng, to);
    free(pixels);
    return status;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *epoch_rng, KilnSample *sample,
                      KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    Plan plan;
    KilnStatus status = plan_line(samples, index, &plan, err);

    (void)epoch_rng; /* the same line in every epoch */
    if (status >= 0 && sample->data[KILN_LINE_PIXELS] != NULL)
        status = draw_line(state->opts, &plan, sample->data[KILN_LINE_PIXELS], err);
    return status >= 0 ? kiln_line_images_write(&state->lines, plan.text, sample, err) : status;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const Samples *samples = ctx;

    ret[KILN_LINE_PIXELS] = samples->lengths[index][0];
    ret[KILN_LINE_CHARACTERS] = samples->lengths[index][1];
}

/* Measure the lines of a split, and check that a checkpoint knows their characters. */
static KilnStatus measure(Samples *samples, int64_t n, KilnError *err)
{
    const State *state = samples->state;
    KilnStatus status = KILN_OK;

    samples->lengths = malloc((size_t)(n + 1) * sizeof(*samples->lengths));
    if (samples->lengths == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*samples->lengths));
    for (int64_t i = 0; i < n && status >= 0; i++) {
        Plan plan;

        status = kiln_poll_check(state->poll, "measuring lines", i, n, err);
        if (status >= 0)
            status = plan_line(samples, i, &plan, err);
        if (status < 0)
            break;
        const KilnString text = { plan.text, strlen(plan.text) };
        status = kiln_line_images_check(&state->lines, text, plan.width, false, err);
        if (status < 0)
            kiln_error_prefix(err, "words: \"%s\": ", plan.text);
        samples->lengths[i][0] = plan.width;
        samples->lengths[i][1] = (int32_t)text.length;
    }
    return status;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    static const char *const texts[] = { "true_text", NULL };
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];
    const int64_t n = fonts_of(state->opts, split).lines;
    KilnStatus status = KILN_OK;

    (void)set;
    samples->state = state;
    samples->split = split;
    if (samples->lengths == NULL)
        status = measure(samples, n, err);
    if (status >= 0)
        *ret = (KilnDataset) { .count = n,
                               .ctx = samples,
                               .get = get,
                               .lengths = lengths,
                               .absent = split == KILN_TRAIN ? texts : NULL };
    return status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state((KilnInstance *)self);

    *ret = KILN_LENGTH_LOADING(opts);
    kiln_text_buckets_set(&state->lines.buckets, ret);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    const State *state = kiln_state(self);

    if (state->left_out > 0)
        add(ctx, &(KilnOmission) { .count = state->left_out,
                                   .what = "words",
                                   .example = state->odd != NULL ? state->odd : "",
                                   .reason = "only words of at most 24 printable ASCII characters "
                                             "are drawn" });
}

static const KilnTensorSpec declared[] = { KILN_LINE_SPECS };

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = kiln_line_spec,
    .dataset = dataset,
    .raw_fields = kiln_line_raw_fields,
    .preprocess = kiln_line_preprocess,
    .save_preprocessing = kiln_line_save_preprocessing,
    .loading = loading,
    .left_out = left_out,
};

const KilnComponent kiln_datamodule_text_lines = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "text_lines",
    .summary = "Lines of text drawn in the system's fonts, other ones for validation and test",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_text_lines, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
