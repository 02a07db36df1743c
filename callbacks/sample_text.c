/* Writes texts that the language model generates after each validation. */
#include "kiln.h"
#include "kiln/tools/generate.h"

#include <string.h>

typedef struct Opts {
    char **prompts;
    size_t prompts_count;
    int64_t max_tokens, every_n_epochs, top_k;
    double temperature;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR_LIST(Opts, prompts, NULL, "how the texts begin"),
    KILN_FIELD_I64(Opts, max_tokens, "100", 1, 1e6, "tokens of each text after its prompt"),
    KILN_FIELD_F64(Opts, temperature, "0.8", 0.0, 1e6, "0: the most likely tokens"),
    KILN_FIELD_I64(Opts, top_k, "0", 0, 1e9, "draw from the k most likely tokens only; 0: all"),
    KILN_FIELD_I64(Opts, every_n_epochs, "1", 1, 1e15, "epochs between texts"),
    KILN_FIELD_END,
};

static KilnStatus write_texts(const Opts *opts, KilnTrainer *trainer,
                              const KilnGenerated *generated, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < generated->n && status >= 0; i++) {
        KilnText text = { 0 };

        kiln_text_printf(&text, "%s%s", opts->prompts[i], generated->list[i].text.data);
        if (text.failed)
            return kiln_error_nomem(err, text.length);
        kiln_trainer_print(trainer, "sample %zu: %s", i + 1, text.data);
        if (kiln_trainer_takes(trainer, KILN_LOG_TEXTS))
            status = kiln_trainer_log_text(trainer, "val/samples", text.data, err);
        kiln_text_release(&text);
    }
    return status;
}

static KilnStatus on_validation_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnGenerateOptions options = {
        .max_tokens = opts->max_tokens,
        .choice = { .temperature = opts->temperature,
                    .top_k = opts->top_k,
                    .seed = kiln_trainer_seed(trainer) },
    };
    KilnGenerated *generated = NULL;

    if (strcmp(kiln_trainer_phase(trainer), "validate") != 0 || kiln_trainer_rank(trainer) != 0 ||
        kiln_trainer_epoch(trainer) % opts->every_n_epochs != 0)
        return KILN_OK;
    KilnStatus status = kiln_trainer_generate(trainer, (const char *const *)opts->prompts,
                                              opts->prompts_count, &options, &generated, err);
    if (status >= 0)
        status = write_texts(opts, trainer, generated, err);
    kiln_generated_free(generated);
    return status;
}

static const KilnCallbackOps ops = { .on_validation_end = on_validation_end };

const KilnComponent kiln_callback_sample_text = {
    .kind = KILN_KIND_CALLBACK,
    .name = "sample_text",
    .summary = "Write texts that the language model generates after each validation",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_sample_text, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
