/* Images with boxes of objects in COCO's format (Lin et al. 2014): a JSON file of annotations for
 * each split, and folders of images. Files are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/images/box_data.h"
#include "kiln/images/image_data.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_BOX_OPTIONS;
    char *root, *annotations, *images;
} Opts;

static const char split_word[] = "SPLIT";

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "8"),
    KILN_FIELD_PATH(Opts, root, NULL, "folder with annotations and images"),
    KILN_FIELD_STR(Opts, annotations, "annotations/instances_SPLIT2017.json",
                   "file of annotations below root; SPLIT stands for train, val and test, of which "
                   "only train must be there"),
    KILN_FIELD_STR(Opts, images, "SPLIT2017", "folder of the images below root"),
    KILN_BOX_FIELDS(Opts),
    KILN_FIELD_END,
};

enum { PATH_ROOM = 4096 };

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "annotations";
    if (strstr(opts->annotations, split_word) == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "expected a path with SPLIT in it, got \"%s\"",
                              opts->annotations);
    return kiln_image_check_channels(opts->channels, ret_option, err);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnBoxForm form = KILN_BOX_FORM(opts);

    return kiln_box_init(self, &form, err);
}

/* root/PATTERN with the split's name for SPLIT. */
static void path_of(const Opts *opts, const char *pattern, KilnSplit split, char ret[PATH_ROOM])
{
    const char *at = strstr(pattern, split_word);

    if (at == NULL)
        snprintf(ret, PATH_ROOM, "%s/%s", opts->root, pattern);
    else
        snprintf(ret, PATH_ROOM, "%s/%.*s%s%s", opts->root, (int)(at - pattern), pattern,
                 kiln_split_name(split), at + strlen(split_word));
}

static KilnStatus read_split(const Opts *opts, KilnBoxState *state, KilnSplit split,
                             const KilnPoll *poll, KilnError *err)
{
    char file[PATH_ROOM], folder[PATH_ROOM];
    struct stat info;

    path_of(opts, opts->annotations, split, file);
    path_of(opts, opts->images, split, folder);
    if (split != KILN_TRAIN && stat(file, &info) < 0)
        return KILN_OK;
    KilnBoxSet *set = &state->sets[split];
    KilnStatus status = kiln_coco_read(file, folder,
                                       split != KILN_TRAIN ? &state->sets[KILN_TRAIN] : NULL,
                                       state->form.image.skips, poll, set, err);
    return status < 0 || split != KILN_TRAIN || set->starts[set->count] > 0
               ? status
               : kiln_error_set(err, KILN_E_FORMAT, "%s: no image has a box", file);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int split = 0;
         split < KILN_SPLIT_COUNT && context->stage != KILN_STAGE_PREDICT && status >= 0; split++)
        status = read_split(kiln_opts(self), kiln_state(self), (KilnSplit)split, context->poll,
                            err);
    return status >= 0 ? kiln_box_setup(self, context, err) : status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnDataModuleOps ops = {
    .features = kiln_box_specs,
    .n_features = KILN_BOX_FEATURES,
    .setup = setup,
    .spec = kiln_box_spec,
    .dataset = kiln_box_dataset,
    .raw_fields = kiln_box_raw_fields,
    .preprocess = kiln_box_preprocess,
    .loading = loading,
    .left_out = kiln_box_left_out,
};

const KilnComponent kiln_datamodule_coco = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "coco",
    .summary = "Images with boxes of objects in COCO's JSON, for detection",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnBoxState),
    .check = check,
    .init = init,
    .release = kiln_box_release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_coco, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
