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
                   "file of annotations below root; SPLIT stands for train, val (or valid) and "
                   "test, of which only train must be there; without SPLIT all images train"),
    KILN_FIELD_STR(Opts, images, "SPLIT2017", "folder of the images below root"),
    KILN_BOX_FIELDS(Opts),
    KILN_FIELD_END,
};

enum { PATH_ROOM = 4096 };

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

/* root/PATTERN with `word` for each SPLIT. */
static void path_of(const Opts *opts, const char *pattern, const char *word, char ret[PATH_ROOM])
{
    int n = snprintf(ret, PATH_ROOM, "%s/", opts->root);

    while (n < PATH_ROOM && pattern[0] != '\0') {
        const char *at = strstr(pattern, split_word);
        const size_t length = at != NULL ? (size_t)(at - pattern) : strlen(pattern);

        n += snprintf(ret + n, (size_t)(PATH_ROOM - n), "%.*s%s", (int)length, pattern,
                      at != NULL ? word : "");
        pattern += length + (at != NULL ? strlen(split_word) : 0);
    }
}

/* The files of a split, called val or, as Roboflow does, valid; false: there are none. */
static bool find_split(const Opts *opts, KilnSplit split, char file[PATH_ROOM],
                       char folder[PATH_ROOM])
{
    const char *const words[] = { kiln_split_name(split), split == KILN_VAL ? "valid" : NULL };
    struct stat info;

    for (size_t i = 0; i < KILN_COUNT(words) && words[i] != NULL; i++) {
        path_of(opts, opts->annotations, words[i], file);
        path_of(opts, opts->images, words[i], folder);
        if (split == KILN_TRAIN || stat(file, &info) == 0)
            return true;
    }
    return false;
}

static KilnStatus read_split(const Opts *opts, KilnBoxState *state, KilnSplit split,
                             const KilnPoll *poll, KilnError *err)
{
    const bool is_train = split == KILN_TRAIN;
    char file[PATH_ROOM], folder[PATH_ROOM];

    if ((!is_train && strstr(opts->annotations, split_word) == NULL) ||
        !find_split(opts, split, file, folder))
        return KILN_OK;
    KilnBoxSet *set = &state->sets[split];
    KilnStatus status = kiln_coco_read(file, folder, !is_train ? &state->sets[KILN_TRAIN] : NULL,
                                       state->form.image.skips, poll, set, err);
    return status < 0 || !is_train || set->starts[set->count] > 0
               ? status
               : kiln_error_set(err, KILN_E_FORMAT, "%s: no image has a box", file);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = KILN_OK;

    for (int split = 0;
         split < KILN_SPLIT_COUNT && context->stage != KILN_STAGE_PREDICT && status >= 0; split++)
        status = read_split(opts, kiln_state(self), (KilnSplit)split, context->poll, err);
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
