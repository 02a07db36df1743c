/* A training loop of one's own: halves the learning rate whenever an epoch does not lower the
 * validation loss, and ends after the third such epoch. Metrics and the log come by callback.
 *   cc loop.c -o loop $(pkg-config --cflags --libs kiln)
 *   ./loop model=mlp lr=0.1 trainer.max_epochs=20 */
#include <math.h>
#include <stdio.h>
#include <kiln_embed.h>

static void print(void *ctx, const char *text)
{
    fputs(text, ctx);
}

static void print_row(void *ctx, const KilnLogRow *row)
{
    (void)ctx;
    for (size_t i = 0; i < row->n; i++)
        printf("step %d: %s %g\n", (int)row->step, row->metrics[i].name, row->metrics[i].value);
}

static KilnStatus train(KilnConfig *config, const KilnRunEnv *env, KilnError *err)
{
    KilnRunResult result = { 0 };
    KilnFit *fit = NULL;
    double best = INFINITY;
    bool more = true;
    int bad = 0;
    KilnStatus status = kiln_fit_open(config, env, &fit, err);

    while (status >= 0 && more && bad < 3) {
        KilnTrainer *trainer = kiln_fit_trainer(fit);
        const int64_t epoch = kiln_trainer_epoch(trainer);
        double loss = NAN;

        status = kiln_fit_step(fit, &more, err);
        if (status < 0 || !kiln_trainer_metric(trainer, "val/loss", &loss) ||
            kiln_trainer_batch(trainer) < kiln_trainer_batches(trainer))
            continue; /* within an epoch */
        if (loss >= best)
            kiln_trainer_set_learning_rate(trainer, kiln_trainer_learning_rate(trainer) / 2);
        bad += loss >= best;
        best = loss < best ? loss : best;
        printf("after epoch %lld: val/loss %g, best %g\n", (long long)epoch, loss, best);
    }
    if (status >= 0 && bad == 3)
        kiln_trainer_stop(kiln_fit_trainer(fit), "val/loss no longer falls");
    const KilnStatus closed = kiln_fit_close(fit, &result, status < 0 ? NULL : err);
    printf("%s: %s\n", result.status, result.run_dir);
    return status < 0 ? status : closed;
}

int main(int argc, char **argv)
{
    KilnComposeRequest request = { .overrides = (const char *const *)argv + (argc > 0),
                                   .sections = kiln_run_sections() };
    const KilnConsole console = { .width = 100, .write = print, .ctx = stderr };
    KilnRegistry *registry = NULL;
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_registry_new(&registry, &err);
    if (status >= 0 && kiln_errors_new(&errors) >= 0) {
        const KilnRunEnv env = { .registry = registry, .console = &console, .log_row = print_row };

        request.registry = registry;
        status = kiln_compose(&request, &config, errors);
        if (status >= 0 && (status = kiln_config_check(config, registry, errors)) >= 0)
            status = train(config, &env, &err);
    }
    if (status < 0)
        fprintf(stderr, "loop: %s\n", err.text[0] ? err.text : kiln_errors_text(errors, 0));
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return status < 0;
}
