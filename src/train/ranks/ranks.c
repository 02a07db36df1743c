/* Opens the strategy of a run, and moves bytes between its ranks. */
#include "train/ranks/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"

static const KilnStrategyOps *ops_of(const KilnRanks *ranks)
{
    return kiln_instance_component(ranks->strategy)->ops.strategy;
}

bool kiln_ranks_several(const KilnRanks *ranks)
{
    return ranks->world > 1;
}

/* ---- Opening and closing ----------------------------------------------------------------- */

static KilnStatus check(const KilnRanks *ranks, KilnError *err)
{
    const KilnStrategyOps *ops = ops_of(ranks);
    const char *name = kiln_instance_name(ranks->strategy);

    if (ranks->world < 1 || ranks->rank < 0 || ranks->rank >= ranks->world)
        return kiln_error_set(err, KILN_E_RANGE,
                              "strategy %s: rank %d of a world of %d: expected a world of at least "
                              "1, and a rank below it",
                              name, ranks->rank, ranks->world);
    if (ranks->world > 1 &&
        (ops->all_reduce == NULL || ops->all_gather == NULL || ops->broadcast == NULL))
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "strategy %s: several ranks need all_reduce, all_gather and "
                              "broadcast",
                              name);
    return KILN_OK;
}

KilnStatus kiln_ranks_open(KilnRanks *ranks, KilnConfig *config, const KilnRegistry *registry,
                           KilnError *err)
{
    KilnStatus status = kiln_config_build(config, "trainer.strategy", registry, KILN_KIND_STRATEGY,
                                          &ranks->strategy, err);

    if (status < 0)
        return status;
    if (ops_of(ranks)->setup == NULL)
        return kiln_error_set(err, KILN_E_PLUGIN, "strategy %s has no setup",
                              kiln_instance_name(ranks->strategy));
    status = KILN_CALLED(ranks->strategy, "setup",
                         ops_of(ranks)->setup(ranks->strategy, &ranks->rank, &ranks->world, err),
                         err);
    if (status < 0)
        return kiln_error_prefix(err, "strategy %s: ", kiln_instance_name(ranks->strategy));
    return check(ranks, err);
}

void kiln_ranks_close(KilnRanks *ranks)
{
    if (ranks->strategy != NULL && ops_of(ranks)->teardown != NULL) {
        kiln_call_enter(ranks->strategy, "teardown");
        ops_of(ranks)->teardown(ranks->strategy);
        kiln_call_leave();
    }
    kiln_instance_free(ranks->strategy);
    ranks->strategy = NULL;
    for (size_t i = 0; i < KILN_COUNT(ranks->kept); i++) {
        free(ranks->kept[i]);
        ranks->kept[i] = NULL;
    }
}

/* ---- Moving bytes -------------------------------------------------------------------------- */

/* Name the strategy in an error of one of its functions. */
static KilnStatus moved(const KilnRanks *ranks, KilnStatus status, KilnError *err)
{
    return status < 0
               ? kiln_error_prefix(err, "strategy %s, rank %d of %d: ",
                                   kiln_instance_name(ranks->strategy), ranks->rank, ranks->world)
               : KILN_OK;
}

/* A collective call after this rank has failed and disconnected. */
static KilnStatus closed(KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO, "this rank has left the others");
}

KilnStatus kiln_ranks_sum(KilnRanks *ranks, void *data, int64_t count, KilnDType dtype,
                          KilnError *err)
{
    if (ranks->world <= 1)
        return KILN_OK;
    if (ranks->strategy == NULL)
        return closed(err);
    return moved(ranks,
                 KILN_CALLED(ranks->strategy, "all_reduce",
                             ops_of(ranks)->all_reduce(ranks->strategy, data, count, dtype, err),
                             err),
                 err);
}

KilnStatus kiln_ranks_gather(KilnRanks *ranks, const void *mine, size_t bytes, void *all,
                             KilnError *err)
{
    if (ranks->world <= 1) {
        memcpy(all, mine, bytes);
        return KILN_OK;
    }
    if (ranks->strategy == NULL)
        return closed(err);
    return moved(ranks,
                 KILN_CALLED(ranks->strategy, "all_gather",
                             ops_of(ranks)->all_gather(ranks->strategy, mine, bytes, all, err),
                             err),
                 err);
}

KilnStatus kiln_ranks_broadcast(KilnRanks *ranks, void *data, size_t bytes, KilnError *err)
{
    if (ranks->world <= 1 || bytes == 0)
        return KILN_OK;
    if (ranks->strategy == NULL)
        return closed(err);
    return moved(ranks,
                 KILN_CALLED(ranks->strategy, "broadcast",
                             ops_of(ranks)->broadcast(ranks->strategy, data, bytes, 0, err), err),
                 err);
}

KilnStatus kiln_ranks_broadcast_text(KilnRanks *ranks, char **text, KilnError *err)
{
    int64_t length = *text != NULL ? (int64_t)strlen(*text) : -1;
    KilnStatus status = kiln_ranks_broadcast(ranks, &length, sizeof(length), err);

    if (status < 0 || ranks->world <= 1)
        return status;
    if (ranks->rank > 0) {
        free(*text);
        *text = length >= 0 ? calloc((size_t)length + 1, 1) : NULL;
        if (length >= 0 && *text == NULL)
            return kiln_error_nomem(err, (size_t)length);
    }
    return length > 0 ? kiln_ranks_broadcast(ranks, *text, (size_t)length, err) : KILN_OK;
}

KilnStatus kiln_ranks_gather_bytes(KilnRanks *ranks, const void *mine, size_t bytes, char **ret_all,
                                   size_t *ret_stride, int64_t **ret_sizes, KilnError *err)
{
    const size_t world = ranks->world > 1 ? (size_t)ranks->world : 1;
    const int64_t own = (int64_t)bytes;
    int64_t *sizes = calloc(world, sizeof(*sizes)), most = 0;
    char *padded = NULL, *all = NULL;
    KilnStatus status = sizes != NULL ? kiln_ranks_gather(ranks, &own, sizeof(own), sizes, err)
                                      : kiln_error_nomem(err, world * sizeof(*sizes));

    for (size_t r = 0; r < world && status >= 0; r++)
        most = sizes[r] > most ? sizes[r] : most;
    if (status >= 0 && most > 0) {
        padded = calloc(1, (size_t)most);
        all = malloc(world * (size_t)most);
        if (padded == NULL || all == NULL)
            status = kiln_error_nomem(err, world * (size_t)most);
    }
    if (status >= 0 && most > 0) {
        memcpy(padded, bytes > 0 ? mine : "", bytes);
        status = kiln_ranks_gather(ranks, padded, (size_t)most, all, err);
    }
    free(padded);
    if (status < 0) {
        free(sizes);
        free(all);
        return status;
    }
    *ret_all = all;
    *ret_stride = (size_t)most;
    *ret_sizes = sizes;
    return KILN_OK;
}
