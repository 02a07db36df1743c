/* Checks a sampler on a made-up set: indices that exist, each once unless samples are drawn, and
 * the same order again. */
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "kiln/loading.h"

enum { COUNT = 61, CLASSES = 3, EPOCHS = 3 };

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    (void)ctx, (void)index, (void)rng, (void)sample;
    return kiln_error_set(err, KILN_E_INTERNAL, "a sampler needs no samples, only their labels");
}

static int64_t label(void *ctx, int64_t index)
{
    (void)ctx;
    return index % 7 == 0 ? 2 : index % 2; /* classes of different sizes */
}

static const KilnDataset dataset = { .count = COUNT, .get = get, .label = label };
static const char *const class_names[CLASSES] = { "a", "b", "c" };
static const KilnSampling sampling = {
    .dataset = &dataset, .n_classes = CLASSES, .class_names = class_names, .seed = 1
};

static void order(KilnInstance *sampler, int64_t epoch, int64_t count, uint32_t *ret)
{
    kiln_call_enter(sampler, "order");
    kiln_instance_component(sampler)->ops.sampler->order(sampler, &sampling, epoch, count, ret);
    kiln_call_leave();
}

static void check_indices(KilnCase *self, const uint32_t *indices, int64_t count)
{
    bool seen[COUNT] = { false };

    for (int64_t i = 0; i < count; i++) {
        if (indices[i] >= COUNT)
            return kiln_case_fail(self, "indices are from 0 to the set's count - 1",
                                  "index %u of a set of %d samples", indices[i], COUNT);
        if (seen[indices[i]] && !self->component->ops.sampler->draws)
            return kiln_case_fail(self, "set `draws` if an epoch may repeat samples",
                                  "sample %u comes twice in an epoch", indices[i]);
        seen[indices[i]] = true;
    }
}

static void check_epochs(KilnCase *self, KilnInstance *sampler, int64_t count)
{
    uint32_t *first = calloc(2 * (size_t)count + 1, sizeof(*first)), *second = first + count;

    if (first == NULL)
        return kiln_case_fail(self, "", "memory is out");
    for (int64_t epoch = EPOCHS - 1; epoch >= 0 && !kiln_case_failed(self); epoch--) {
        memset(first, 0xFF, 2 * (size_t)count * sizeof(*first));
        order(sampler, epoch, count, first);
        order(sampler, (epoch + 1) % EPOCHS, count, second); /* another one in between */
        order(sampler, epoch, count, second);
        check_indices(self, first, count);
        if (memcmp(first, second, (size_t)count * sizeof(*first)) != 0)
            kiln_case_fail(self, "the order depends on options, data, seed and epoch alone",
                           "epoch %lld has another order the second time", (long long)epoch);
    }
    free(first);
}

void kiln_contract_order(KilnCase *self)
{
    const KilnSamplerOps *ops = self->component->ops.sampler;
    KilnCaseInstance built;
    KilnError err = { 0 };

    if (!kiln_case_open(self, &built))
        return;
    KilnStatus status = ops->setup != NULL
                            ? KILN_CALLED(built.instance, "setup",
                                          ops->setup(built.instance, &sampling, &err), &err)
                            : KILN_OK;
    const int64_t count = status >= 0 && ops->count != NULL ? ops->count(built.instance, &sampling)
                                                            : COUNT;
    if (status < 0)
        kiln_case_skip(self, "add sampler.OPTION=VALUE to the command",
                       "it refuses a set of %d samples in %d classes: %s", COUNT, CLASSES,
                       err.text);
    else if (count < 0 || count > 1000 * COUNT)
        kiln_case_fail(self, "", "`count` gives %lld samples for a set of %d", (long long)count,
                       COUNT);
    else
        check_epochs(self, built.instance, count);
    kiln_case_pass(self, "%lld of %d samples, %d epochs", (long long)count, COUNT, EPOCHS);
    kiln_case_close(&built);
}
