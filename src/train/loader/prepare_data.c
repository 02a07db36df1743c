#include "train/loader/prepare_data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/text.h"
#include "download/download.h"
#include "kiln/tools/clock.h"
#include "registry/instance.h"
#include "registry/shared_data.h"
#include "train/run/preparation.h"
#include "train/trainer.h"

static bool is_missing(const KilnSource *source)
{
    return access(source->to, F_OK) != 0;
}

/* "sources: to: ..." begins with the option, so its origin is found. */
static KilnStatus check_source(const KilnSource *source, KilnError *err)
{
    const size_t digits = strlen(source->sha256);

    if (strncmp(source->url, "http://", 7) != 0 && strncmp(source->url, "https://", 8) != 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "sources: url '%s': expected an address that begins with https:// or "
                              "http://",
                              source->url);
    if (digits != 0 && (digits != 64 || strspn(source->sha256, "0123456789abcdefABCDEF") != 64))
        return kiln_error_set(err, KILN_E_RANGE,
                              "sources: sha256 '%s' of %s: expected 64 hexadecimal digits",
                              source->sha256, source->url);
    return KILN_OK;
}

static KilnStatus download(KilnTrainer *trainer, const KilnSource *source, KilnError *err)
{
    const char *slash = strrchr(source->to, '/');
    KilnText what = { 0 };
    KilnStatus status = KILN_OK;

    kiln_text_printf(&what, "downloading %s", slash != NULL ? slash + 1 : source->to);
    if (what.data == NULL)
        return kiln_error_nomem(err, strlen(source->to));
    status = kiln_download(
        &(KilnDownload) {
            .url = source->url, .sha256 = source->sha256, .path = source->to, .what = what.data },
        &trainer->poll, err);
    kiln_preparation_end(trainer); /* it shows `what` */
    kiln_text_release(&what);
    if (status == KILN_E_IO || status == KILN_E_MISSING) {
        const KilnError cause = *err;

        kiln_error_set(err, status, "%s; or fetch %s yourself and put it at %s", cause.text,
                       status == KILN_E_MISSING ? source->url : "it", source->to);
    }
    return status;
}

static KilnStatus download_sources(KilnTrainer *trainer, KilnError *err)
{
    const KilnLoading *loading = &trainer->data.loading;
    KilnStatus status = KILN_OK;

    if (loading->download && loading->sources_count == 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "download: nothing says where the files are: add them to "
                              "datamodule.sources, each with url, sha256 and to");
    for (size_t i = 0; i < loading->sources_count && loading->download && status >= 0; i++) {
        status = check_source(&loading->sources[i], err);
        if (status >= 0 && is_missing(&loading->sources[i]))
            status = download(trainer, &loading->sources[i], err);
    }
    return status;
}

/* Download the sources that are missing, if the datamodule's options say so, and let it prepare.
 * Rank 0 does both, and the other ranks wait for it. */
static KilnStatus prepare(KilnTrainer *trainer, const KilnDataContext *context, KilnError *err)
{
    KilnInstance *datamodule = trainer->datamodule;
    const KilnDataModuleOps *ops = kiln_instance_component(datamodule)->ops.datamodule;
    KilnStatus status = KILN_OK;
    char done = 1;

    if (context->stage == KILN_STAGE_PREDICT ||
        (ops->prepare_data == NULL && !trainer->data.loading.download))
        return KILN_OK;
    if (trainer->ranks.rank == 0) {
        status = download_sources(trainer, err);
        if (status >= 0 && ops->prepare_data != NULL)
            status = KILN_CALLED(datamodule, "prepare_data",
                                 ops->prepare_data(datamodule, context, err), err);
    }
    if (status < 0)
        return kiln_instance_error(trainer->config, datamodule, err);
    return kiln_ranks_broadcast(&trainer->ranks, &done, sizeof(done), err);
}

/* Where setup failed and sources are missing, add how to download them. Keeps and returns the
 * status. */
static KilnStatus missing_source(const KilnLoading *loading, KilnStatus status, KilnError *err)
{
    const char *missing = NULL;
    size_t n = 0;

    for (size_t i = 0; i < loading->sources_count; i++)
        if (is_missing(&loading->sources[i])) {
            missing = loading->sources[i].to;
            n++;
        }
    if (n == 0)
        return status;
    const KilnError cause = *err;
    if (n == 1)
        return kiln_error_set(err, status, "%s; datamodule.download=true downloads %s", cause.text,
                              missing);
    return kiln_error_set(err, status,
                          "%s; datamodule.download=true downloads the %zu files that are missing",
                          cause.text, n);
}

/* ---- Set-up ---------------------------------------------------------------------------- */

/* A set-up that takes less is as fast as a fork from a process that has the data. */
static const double worth_sharing_s = 0.02;

/* Does the set-up depend on nothing but the datamodule's options and the seed? */
static bool may_share(const KilnTrainer *trainer, const KilnDataSpec *remembered)
{
    return trainer->stage == KILN_STAGE_FIT && remembered == NULL && trainer->fitted == NULL &&
           trainer->env->data == NULL && !kiln_ranks_several(&trainer->ranks);
}

void kiln_data_take(KilnTrainer *trainer, const KilnDataSpec *remembered)
{
    if (may_share(trainer, remembered))
        trainer->datamodule = kiln_shared_data_take(trainer->config, trainer->poll);
    trainer->data.taken = trainer->datamodule != NULL;
}

KilnStatus kiln_data_set_up(KilnTrainer *trainer, const KilnDataContext *context, KilnError *err)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    const double began = kiln_clock();
    KilnStatus status = prepare(trainer, context, err);

    if (status < 0)
        return status;
    status = KILN_CALLED(trainer->datamodule, "setup",
                         ops->setup(trainer->datamodule, context, err), err);
    if (status == KILN_E_IO && context->stage != KILN_STAGE_PREDICT)
        status = missing_source(&trainer->data.loading, status, err);
    if (status < 0)
        return kiln_instance_error(trainer->config, trainer->datamodule, err);
    const bool shares = kiln_clock() - began >= worth_sharing_s &&
                        may_share(trainer, context->remembered);
    kiln_shared_data_offer(trainer->config, shares ? trainer->datamodule : NULL, &trainer->poll);
    return KILN_OK;
}
