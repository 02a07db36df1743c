/* Generating with a predictor's weights, and with a run's. */
#include "kiln/embed/generate.h"

#include "train/assemble.h"
#include "train/generate/generate.h"
#include "train/predict/predictor.h"

KilnStatus kiln_generate(KilnPredictor *predictor, const char *const *prompts, size_t n,
                         const KilnGenerateOptions *options, KilnGenerated **ret, KilnError *err)
{
    KilnPredictSlot *slot = NULL;
    KilnStatus status = kiln_predict_slot_take(&predictor->slots, &slot, err);

    if (status < 0)
        return status;
    const KilnGenerator generator = {
        .trainer = predictor->trainer,
        .step = slot->step,
        .backend = slot->backend != NULL ? slot->backend : predictor->trainer->backend,
        .recording = &predictor->recording,
    };
    status = kiln_generator_run(&generator, prompts, n, options, ret, err);
    kiln_predict_slot_give_back(&predictor->slots, slot);
    return status;
}

KilnStatus kiln_trainer_generate(KilnTrainer *trainer, const char *const *prompts, size_t n,
                                 const KilnGenerateOptions *options, KilnGenerated **ret,
                                 KilnError *err)
{
    KilnGenerator generator = { .trainer = trainer };
    KilnGraph *graph = NULL;
    KilnStep step = { 0 };
    KilnStatus status = kiln_trainer_new_graph(trainer, &generator.backend, &graph, err);

    if (status < 0)
        return status;
    kiln_trainer_set_up_step(trainer, graph, &step);
    generator.step = &step;
    status = kiln_generator_run(&generator, prompts, n, options, ret, err);
    kiln_graph_free(graph);
    kiln_backend_free(generator.backend);
    return status;
}
