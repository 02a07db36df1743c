/* Beam search over the batch of a step that has run: an encoding step, then a step per token. */
#include "kiln/tools/beam_search.h"

#include <stdlib.h>
#include <string.h>

#include "train/step/beams.h"
#include "train/step/row_results_state.h"

enum { CACHE_STEP = 16 }; /* caches have a multiple of these rows, so that few plans are made */

/* A running search. */
typedef struct Search {
    const KilnBeamSearch *search;
    KilnResults *results;
    int64_t n, rows; /* samples; beams of all samples */
    KilnBeams beams;
    KilnDecode decode;
    size_t n_memories;
    struct {
        KilnShape shape;
        void *data; /* owned */
    } memories[KILN_MODEL_MEMORIES];
    KilnDType dtype; /* of the memories */
} Search;

/* ---- Steps ---------------------------------------------------------------------------------- */

static KilnStatus keep_memory(Search *at, size_t i, const KilnTensor *tensor, KilnError *err)
{
    const size_t bytes = kiln_tensor_bytes(tensor);

    at->dtype = kiln_tensor_dtype(tensor);
    at->memories[i].shape = *kiln_tensor_shape(tensor);
    at->memories[i].data = malloc(bytes);
    if (at->memories[i].data == NULL)
        return kiln_error_nomem(err, bytes);
    memcpy(at->memories[i].data, kiln_tensor_data(tensor), bytes);
    return KILN_OK;
}

static KilnStatus encode(Search *at, KilnError *err)
{
    KilnTensor *memories[KILN_MODEL_MEMORIES] = { NULL };
    KilnStep *step = kiln_results_begin(at->results);

    at->n_memories = at->search->encode(at->search->ctx, step, memories);
    KilnStatus status = kiln_results_run(at->results, memories, at->n_memories, err);
    for (size_t i = 0; i < at->n_memories && status >= 0; i++)
        status = keep_memory(at, i, memories[i], err);
    return status;
}

/* The log-probabilities of the tokens after the newest of each beam: [rows, n_ids]. */
static KilnStatus next(Search *at, const float **ret, KilnError *err)
{
    const KilnBatch batch = { .size = at->rows };
    KilnTensor *memories[KILN_MODEL_MEMORIES] = { NULL };

    at->results->own.decode = &at->decode;
    KilnStep *step = kiln_results_begin_batch(at->results, &batch);
    KilnGraph *graph = kiln_step_graph(step);
    for (size_t i = 0; i < at->n_memories; i++)
        memories[i] = kiln_graph_input(graph, at->dtype, at->memories[i].shape,
                                       at->memories[i].data);
    KilnTensor *tokens = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(at->rows, 1), at->beams.last);
    KilnTensor *logits = at->search->next(at->search->ctx, step, memories, tokens);
    KilnTensor *log_probs = kiln_step_as_f32(
        kiln_reshape(kiln_log_softmax(logits, -1), KILN_SHAPE(at->rows, at->search->n_ids)));
    KilnStatus status = kiln_results_run(at->results, &log_probs, 1, err);
    at->results->own.decode = NULL;
    if (status >= 0)
        *ret = kiln_tensor_data(log_probs);
    return status;
}

static KilnStatus run(Search *at, KilnError *err)
{
    KilnStatus status = encode(at, err);

    while (status >= 0 && !kiln_beams_done(&at->beams)) {
        const float *log_probs = NULL;

        for (int64_t r = 0; r < at->rows; r++)
            at->decode.position[r] = (int32_t)at->beams.length;
        status = next(at, &log_probs, err);
        if (status >= 0)
            status = kiln_beams_extend(&at->beams, log_probs, err);
        if (status >= 0)
            status = kiln_decode_reorder(&at->decode, at->beams.parents, at->beams.length, err);
    }
    return status;
}

KilnStatus kiln_beam_search(KilnResults *results, const KilnBeamSearch *search,
                            KilnHypothesis **ret, KilnError *err)
{
    const int64_t n = kiln_results_size(results);
    Search at = { .search = search, .results = results, .n = n, .rows = n * search->beams };
    int64_t longest = search->limits != NULL ? 1 : search->max_length;

    for (int64_t s = 0; s < n && search->limits != NULL; s++)
        longest = search->limits[s] > longest ? search->limits[s] : longest;
    longest = (longest + CACHE_STEP - 1) / CACHE_STEP * CACHE_STEP;
    longest = longest < search->max_length ? longest : search->max_length;
    KilnStatus status = kiln_decode_init(&at.decode, results->graph->backend, at.rows, longest,
                                         err);
    if (status >= 0)
        status = kiln_beams_init(&at.beams, search, n, err);
    if (status >= 0)
        status = run(&at, err);
    if (status >= 0)
        status = kiln_beams_take(&at.beams, ret, err);
    for (size_t i = 0; i < at.n_memories; i++)
        free(at.memories[i].data);
    kiln_beams_release(&at.beams);
    kiln_decode_release(&at.decode);
    return status;
}
