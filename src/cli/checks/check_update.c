/* Checks an optimizer's update of a few parameters: finite, the same again and with two threads,
 * and none where the factor of the learning rate is 0. The formula itself is up to the author. */
#include <math.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "graph/backend.h"
#include "kiln/module.h"

enum { N = 5000, FROZEN_BEGIN = 1000, FROZEN_END = 3000, UPDATES = 3 };

/* Parameters and state after some updates. */
typedef struct Result {
    float params[N], slots[KILN_MAX_SLOTS][N];
} Result;

typedef struct Update {
    KilnCase *self;
    KilnInstance *optimizer;
    const KilnOptimizerOps *ops;
    KilnOptimizerCommon common;
    const char *names[KILN_MAX_SLOTS];
    size_t n_slots;
} Update;

static float initial(int64_t i)
{
    return (float)(i % 13 - 6) / 10.0F;
}

/* Record and run update number `step`. */
static KilnStatus update_once(const Update *of, KilnGraph *graph, int64_t step, Result *result,
                              KilnError *err)
{
    static float gradients[N];
    static const int64_t ends[] = { FROZEN_BEGIN, FROZEN_END, N };
    const float decay = (float)of->common.weight_decay;
    const float rates[] = { 1.0F, decay, 0.0F, decay, 0.5F, 0.0F };
    const float scale = 0.5F;
    float hyper[KILN_MAX_HYPER];
    KilnFlat flat = { 0 };

    kiln_call_enter(of->optimizer, "hyper");
    const size_t n_hyper = of->ops->hyper(of->optimizer, of->common.lr, step, hyper);
    kiln_call_leave();
    if (n_hyper > KILN_MAX_HYPER)
        return kiln_error_set(err, KILN_E_RANGE, "`hyper` gives %zu numbers, at most %d fit",
                              n_hyper, KILN_MAX_HYPER);
    for (int64_t i = 0; i < N; i++)
        gradients[i] = (float)((i * step) % 17 - 8) / 50.0F;
    kiln_graph_begin(graph);
    flat.param = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(N), result->params, false, NULL);
    flat.grad = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(N), gradients, false, NULL);
    flat.hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)n_hyper), hyper);
    flat.scale = kiln_graph_input(graph, KILN_F32, KILN_SCALAR, &scale);
    flat.segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(3), ends);
    flat.rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(3, 2), rates);
    for (size_t i = 0; i < of->n_slots; i++)
        if (of->names[i] != NULL)
            flat.slots[i] = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(N), result->slots[i],
                                                false, NULL);
    kiln_call_enter(of->optimizer, "update");
    of->ops->update(of->optimizer, &flat);
    kiln_call_leave();
    return kiln_graph_run(graph, NULL, 0, err);
}

static bool update(const Update *of, int threads, Result *ret)
{
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    memset(ret, 0, sizeof(*ret));
    for (int64_t i = 0; i < N; i++)
        ret->params[i] = initial(i);
    KilnStatus status = kiln_backend_cpu_new(threads, &backend, &err);
    if (status >= 0)
        status = kiln_graph_new(backend, &graph, &err);
    for (int64_t step = 1; step <= UPDATES && status >= 0; step++)
        status = update_once(of, graph, step, ret, &err);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    if (status < 0)
        kiln_case_fail_with(of->self, &err);
    return status >= 0;
}

static void check_result(const Update *of, const Result *result)
{
    bool moved = false;

    for (int64_t i = 0; i < N; i++) {
        const bool frozen = i >= FROZEN_BEGIN && i < FROZEN_END;

        if (!isfinite(result->params[i]))
            return kiln_case_fail(of->self, "",
                                  "parameter %lld is not a finite number after %d "
                                  "updates",
                                  (long long)i, UPDATES);
        if (frozen && result->params[i] != initial(i))
            return kiln_case_fail(of->self, "leave segments alone whose factor in `rates` is 0",
                                  "it changes parameters that are frozen");
        moved = moved || result->params[i] != initial(i);
    }
    if (!moved && of->common.lr > 0.0)
        kiln_case_fail(of->self, "write the parameters: kiln_store, or `updates` of an operation",
                       "no parameter has changed after %d updates", UPDATES);
}

static void check_slots(const Update *of)
{
    if (of->n_slots > KILN_MAX_SLOTS)
        kiln_case_fail(of->self, "", "`slots` names %zu tensors, at most %d are allowed",
                       of->n_slots, KILN_MAX_SLOTS);
    for (size_t i = 0; i < of->n_slots && !kiln_case_failed(of->self); i++)
        for (size_t j = 0; j < i; j++)
            if (of->names[i] != NULL && of->names[j] != NULL &&
                strcmp(of->names[i], of->names[j]) == 0)
                kiln_case_fail(of->self, "checkpoints store them by name",
                               "two slots are called %s", of->names[i]);
}

void kiln_contract_update(KilnCase *self)
{
    static Result results[3]; /* in a child process */
    static const int threads[] = { 1, 1, 2 };
    KilnCaseInstance built;

    if (!kiln_case_open(self, &built))
        return;
    Update of = { .self = self,
                  .optimizer = built.instance,
                  .ops = self->component->ops.optimizer };
    kiln_call_enter(of.optimizer, "common");
    of.ops->common(of.optimizer, &of.common);
    kiln_call_leave();
    of.n_slots = of.ops->slots != NULL ? of.ops->slots(of.optimizer, of.names) : 0;
    check_slots(&of);
    /* Norms of layers need segments of their own, which only a run makes. */
    for (int i = 0; i < 3 && !kiln_case_failed(self); i++)
        if (update(&of, threads[i], &results[i]))
            check_result(&of, &results[i]);
    if (!kiln_case_failed(self) && memcmp(&results[0], &results[1], sizeof(*results)) != 0)
        kiln_case_fail(self, "depend on the inputs alone", "the same updates give other numbers");
    if (!kiln_case_failed(self) && memcmp(&results[0], &results[2], sizeof(*results)) != 0)
        kiln_case_fail(self, "each element's update must not depend on the range of its thread",
                       "two threads give other numbers than one");
    kiln_case_pass(self, "%zu state tensors; frozen segments stay, 1 and 2 threads are equal",
                   of.n_slots);
    kiln_case_close(&built);
}
