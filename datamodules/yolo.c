/* Images with boxes of objects as Ultralytics' YOLO lays them out: folders of images, a text of
 * boxes for each image, and a YAML file that names both. Files are decoded when a sample is read.
 */
#include "kiln.h"
#include "kiln/images/box_data.h"
#include "kiln/images/image_data.h"

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_BOX_OPTIONS;
    char *data, *root;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "8"),
    KILN_FIELD_PATH(Opts, data, NULL,
                    "YAML file with names, path, and folders of images (or .txt lists of them) for "
                    "train, val and test, of which only train must be there"),
    KILN_FIELD_PATH_OPT(Opts, root, "null",
                        "folder that the file's paths are below, in place of its `path`"),
    KILN_BOX_FIELDS(Opts),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    return kiln_image_check_channels(((const Opts *)options)->channels, ret_option, err);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnBoxForm form = KILN_BOX_FORM(opts);

    return kiln_box_init(self, &form, err);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnBoxState *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    for (int split = 0;
         split < KILN_SPLIT_COUNT && context->stage != KILN_STAGE_PREDICT && status >= 0; split++)
        status = kiln_yolo_read(opts->data, opts->root, (KilnSplit)split, state->form.image.skips,
                                context->poll, &state->sets[split], err);
    return status >= 0 ? kiln_box_setup(self, context, opts->val_fraction, err) : status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = kiln_box_specs,
    .n_features = KILN_BOX_FEATURES,
    .setup = setup,
    .spec = kiln_box_spec,
    .dataset = kiln_box_dataset,
    .raw_fields = kiln_box_raw_fields,
    .preprocess = kiln_box_preprocess,
    .loading = loading,
    .left_out = kiln_box_left_out,
    .check = kiln_box_check,
};

const KilnComponent kiln_datamodule_yolo = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "yolo",
    .summary = "Images with boxes of objects in YOLO's texts, for detection",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnBoxState),
    .check = check,
    .init = init,
    .release = kiln_box_release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_yolo, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
