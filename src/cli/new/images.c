/* Configs for images: in class folders, and with masks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/min.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/new/new_config.h"
#include "kiln/image.h"
#include "kiln/images/image_masks.h"

/* ---- Sizes ----------------------------------------------------------------------------------- */

typedef struct Sizes {
    int64_t looked, grey, bad, low[2], high[2]; /* heights and widths */
    char why[2048];                             /* the first bad one */
} Sizes;

/* What size images are scaled to, of those that are at least so large. */
static int64_t scaled_to(int64_t side)
{
    static const int64_t sides[] = { 128, 96, 64, 48, 32 };

    for (size_t i = 0; i < KILN_COUNT(sides); i++)
        if (side >= sides[i])
            return sides[i];
    return sides[KILN_COUNT(sides) - 1];
}

static KilnStatus read_sizes(KilnNewConfig *config, const char *(*path)(void *ctx, int64_t i),
                             void *ctx, int64_t n, Sizes *ret, KilnError *err)
{
    enum { LOOKED = 500 };
    const int64_t every = n / LOOKED + 1;

    *ret = (Sizes) { .low = { INT64_MAX, INT64_MAX } };
    for (int64_t i = 0; i < n; i += every) {
        int64_t size[3];
        KilnError why = { 0 };

        if (kiln_poll_check(config->poll, "reading sizes of images", i, n, err) < 0)
            return KILN_E_INTERRUPTED;
        if (kiln_image_size(path(ctx, i), 0, size, &why) < 0) {
            if (ret->bad++ == 0)
                snprintf(ret->why, sizeof(ret->why), "%s", why.text);
            continue;
        }
        ret->looked++;
        ret->grey += size[2] == 1;
        for (int k = 0; k < 2; k++) {
            ret->low[k] = kiln_min_i64(ret->low[k], size[k]);
            ret->high[k] = size[k] > ret->high[k] ? size[k] : ret->high[k];
        }
    }
    return ret->looked > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT, "none of the images can be read; the first: %s",
                                ret->why);
}

static void say_sizes(KilnNewConfig *config, const Sizes *sizes, bool differ)
{
    if (differ)
        kiln_new_say(config, "images", "%lldx%lld to %lldx%lld pixels (height x width)",
                     (long long)sizes->low[0], (long long)sizes->low[1], (long long)sizes->high[0],
                     (long long)sizes->high[1]);
    else
        kiln_new_say(config, "images", "%lldx%lld pixels, %s", (long long)sizes->low[0],
                     (long long)sizes->low[1], sizes->grey == sizes->looked ? "grey" : "colour");
    if (sizes->grey > 0 && sizes->grey < sizes->looked)
        kiln_new_say_odd(config,
                         "%lld of %lld images looked at are grey, the others have colours; all are "
                         "read with 3 channels",
                         (long long)sizes->grey, (long long)sizes->looked);
    if (sizes->bad > 0)
        kiln_new_say_odd(config, "%lld of %lld images looked at can't be read; the first: %s",
                         (long long)sizes->bad, (long long)(sizes->bad + sizes->looked),
                         sizes->why);
}

KilnStatus kiln_new_image_form(KilnNewConfig *config, const char *(*path)(void *ctx, int64_t i),
                               void *ctx, int64_t n, KilnError *err)
{
    enum { SMALL = 64 };
    Sizes sizes;
    KilnStatus status = read_sizes(config, path, ctx, n, &sizes, err);

    if (status < 0)
        return status;
    const bool differ = sizes.low[0] != sizes.high[0] || sizes.low[1] != sizes.high[1];
    const int64_t least = kiln_min_i64(sizes.low[0], sizes.low[1]);
    const int64_t to = scaled_to((least + kiln_min_i64(sizes.high[0], sizes.high[1])) / 2);
    const bool scales = differ || sizes.high[0] > SMALL || sizes.high[1] > SMALL || least < 8;
    const bool small = !scales || to <= 32;

    say_sizes(config, &sizes, differ);
    if (sizes.grey == sizes.looked)
        kiln_new_set(config, KILN_NEW_DATA, "channels", "1");
    if (scales)
        kiln_new_set(config, KILN_NEW_DATA, "size", "%lld  # all are scaled to this",
                     (long long)to);
    if (sizes.bad > 0)
        kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave damaged images out");
    config->model = small ? "cnn" : "resnet";
    config->optimizer = "adamw";
    kiln_new_set(config, KILN_NEW_ROOT, "lr", small ? "0.003" : "0.001");
    kiln_new_set_length(config, n, n < 2000 ? 16 : 64, small ? 3000 : 1500, 30);
    if (!small)
        kiln_new_set(config, KILN_NEW_DATA, "transforms",
                     "[{_target_: transform/flip}, {_target_: transform/normalize}]");
    kiln_new_say(config, "model",
                 small ? "cnn: a small convolutional network"
                       : "resnet: ResNet-18 from scratch; published weights: "
                         "docs/finetuning.md");
    return KILN_OK;
}

static const char *list_path(void *ctx, int64_t i)
{
    return (*(const char *const *const *)ctx)[i];
}

/* ---- Class folders --------------------------------------------------------------------------- */

static const char *path_at(void *ctx, int64_t i)
{
    return ((const KilnImageSet *)ctx)->paths[i];
}

static KilnStatus count_classes(KilnNewConfig *config, const KilnImageSet *set, KilnError *err)
{
    int64_t *counts = calloc((size_t)set->n_classes + 1, sizeof(*counts));

    if (counts == NULL)
        return kiln_error_nomem(err, (size_t)set->n_classes * sizeof(*counts));
    for (int64_t i = 0; i < set->count; i++)
        counts[set->labels[i]]++;
    kiln_new_say_classes(config, "images", counts, set->classes, (size_t)set->n_classes);
    free(counts);
    return KILN_OK;
}

static void say_left_out(void *ctx, const KilnOmission *omission)
{
    kiln_new_say_odd(ctx, "%lld %s such as %s: %s", (long long)omission->count, omission->what,
                     omission->example, omission->reason);
}

static KilnStatus fill_image_folder(KilnNewConfig *config, const char *root,
                                    const KilnImageSet *set, const char *folder, KilnError *err)
{
    if (set->n_classes < 2)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: images of one class only (\"%s\"); there is nothing to tell apart", folder,
            set->classes[0]);
    if (set->count < 4)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %lld images are too few to train and validate on", folder,
                              (long long)set->count);
    config->task = "vision";
    config->datamodule = "image_folder";
    kiln_new_say(config, "data", "images in a folder per class: %lld of %lld classes",
                 (long long)set->count, (long long)set->n_classes);
    kiln_new_say(config, "task", "vision: a class of each image");
    kiln_new_set_text(config, KILN_NEW_DATA, "root", root);
    kiln_image_set_left_out(set, say_left_out, config);
    return count_classes(config, set, err);
}

static void say_folder_splits(KilnNewConfig *config, const char *root, bool has_splits,
                              int64_t count)
{
    const double val_fraction = count < 1000 ? 0.2 : 0.1;
    const char *const names[] = { "val", "test" };
    bool has[2] = { false, false };

    for (size_t i = 0; i < KILN_COUNT(names) && has_splits; i++) {
        char *path = kiln_path_join(root, names[i]);

        has[i] = path != NULL && kiln_is_dir(path);
        free(path);
    }
    if (!has[0])
        kiln_new_set(config, KILN_NEW_DATA, "val_fraction", "%g", val_fraction);
    kiln_new_say(config, "split", "train: %s; val: %s; test: %s",
                 has_splits ? "train/" : "all folders",
                 has[0] ? "val/"
                        : kiln_arena_printf(&config->arena, "%g %% of them, drawn by the seed",
                                            100.0 * val_fraction),
                 has[1] ? "test/" : "none");
}

/* An archive's images are not looked at: their form is given. */
static KilnStatus archive_folder(KilnNewConfig *config, const char *path, KilnError *err)
{
    KilnTar *tar = NULL;
    KilnImageSet set = { 0 };
    int64_t size[3] = { 0 };
    KilnStatus status = kiln_tar_open(path, NULL, config->poll, &tar, err);
    bool val = false, test = false;

    if (status >= 0)
        status = kiln_image_set_scan_tar(tar, path, "train", NULL, config->poll, &set, err);
    if (status >= 0)
        status = fill_image_folder(config, path, &set, path, err);
    if (status >= 0) {
        const KilnTarMember first =
            kiln_tar_member(tar, kiln_tar_find(tar, set.paths[0] + strlen(path) + 1));

        status = kiln_image_size_bytes(first.data, first.size, set.paths[0], 0, size, err);
        val = kiln_tar_has_folder(tar, "val");
        test = kiln_tar_has_folder(tar, "test");
    }
    if (status >= 0) {
        const int64_t to = kiln_min_i64(scaled_to(kiln_min_i64(size[0], size[1])), 64);

        config->model = "cnn";
        config->optimizer = "adamw";
        kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.003");
        kiln_new_set_length(config, set.count, 64, 3000, 30);
        kiln_new_set(config, KILN_NEW_DATA, "size", "%lld  # all are scaled to this",
                     (long long)to);
        kiln_new_say(config, "model", "cnn: a small convolutional network");
        kiln_new_say(config, "split", "train: train/; val: %s; test: %s",
                     val ? "val/" : "10 % of train/, drawn by the seed", test ? "test/" : "none");
    }
    kiln_image_set_release(&set);
    kiln_tar_close(tar);
    return status;
}

KilnStatus kiln_new_image_folder(KilnNewConfig *config, const char *root, bool has_splits,
                                 KilnError *err)
{
    KilnImageSet set = { 0 };

    if (kiln_is_tar(root))
        return archive_folder(config, root, err);
    char *folder = has_splits ? kiln_path_join(root, "train") : kiln_strdup(root);
    KilnStatus status = folder != NULL ? kiln_image_set_scan(folder, NULL, config->poll, &set, err)
                                       : kiln_error_nomem(err, strlen(root));
    if (status >= 0)
        status = fill_image_folder(config, root, &set, folder, err);
    if (status >= 0)
        status = kiln_new_image_form(config, path_at, &set, set.count, err);
    if (status >= 0)
        say_folder_splits(config, root, has_splits, set.count);
    kiln_image_set_release(&set);
    free(folder);
    return status;
}

/* ---- Masks ----------------------------------------------------------------------------------- */

enum { VALUES = 256, MASKS_LOOKED = 200 };

/* The values that pixels of some masks have. */
static KilnStatus read_values(KilnNewConfig *config, const KilnMaskPairs *pairs, bool used[VALUES],
                              KilnError *err)
{
    const int64_t n = pairs->images.count, every = n / MASKS_LOOKED + 1;
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < n && status >= 0; i += every) {
        uint8_t *pixels = NULL;
        int64_t height = 0, width = 0;

        status = kiln_poll_check(config->poll, "reading masks", i, n, err);
        if (status >= 0)
            status = kiln_mask_read_png(pairs->masks[i], KILN_IMAGE_MAX_PIXELS, &pixels, &height,
                                        &width, err);
        for (int64_t k = 0; k < height * width && status >= 0; k++)
            used[pixels[k]] = true;
        free(pixels);
    }
    return status;
}

static KilnStatus set_mask_classes(KilnNewConfig *config, const bool used[VALUES], KilnError *err)
{
    enum { MOST_CLASSES = 64 };
    KilnText names = { 0 };
    int last = -1, n_used = 0;

    for (int value = 0; value < VALUES; value++) {
        n_used += used[value];
        if (value < VALUES - 1 && used[value])
            last = value;
    }
    if (n_used < 2 || last < 1 || last >= MOST_CLASSES)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "the masks have pixels of %d different values up to %d; expected the "
            "numbers of classes 0, 1, ... (255: no class). Masks of 0 and 255 need "
            "1 in place of 255",
            n_used, used[VALUES - 1] && last < 1 ? VALUES - 1 : last);
    for (int value = 0; value <= last; value++)
        kiln_text_printf(&names, "%sclass%d", value > 0 ? ", " : "", value);
    kiln_new_set(config, KILN_NEW_DATA, "classes", "[%s]  # names for the values 0 to %d",
                 names.data != NULL ? names.data : "", last);
    kiln_text_release(&names);
    kiln_new_say(config, "target", "the class of each pixel: %d, by the values of the masks%s",
                 last + 1, used[VALUES - 1] ? "; 255 counts as no class" : "");
    return KILN_OK;
}

static const char *in_split(KilnNewConfig *config, const char *root, const char *pattern,
                            const char *split)
{
    const char *at = strstr(pattern, "SPLIT");

    return at == NULL ? kiln_arena_printf(&config->arena, "%s/%s", root, pattern)
                      : kiln_arena_printf(&config->arena, "%s/%.*s%s%s", root, (int)(at - pattern),
                                          pattern, split, at + strlen("SPLIT"));
}

static void fill_masks(KilnNewConfig *config, const char *root, const char *images,
                       const char *masks, int64_t n)
{
    const bool has_val = strstr(images, "SPLIT") != NULL &&
                         kiln_is_dir(in_split(config, root, images, "val"));

    config->task = "segmentation";
    config->datamodule = "mask_folder";
    config->model = "unet";
    config->optimizer = "adam";
    kiln_new_say(config, "data", "%lld images with masks", (long long)n);
    kiln_new_say(config, "task", "segmentation: the class of each pixel");
    kiln_new_say(config, "model", "unet: a small U-Net from scratch");
    kiln_new_say(config, "split", "train: %s; val: %s", in_split(config, root, images, "train"),
                 has_val ? in_split(config, root, images, "val")
                         : "10 % of them, drawn by the seed");
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.001");
    kiln_new_set_length(config, n, 8, 2000, 40);
    kiln_new_set_text(config, KILN_NEW_DATA, "root", root);
    kiln_new_set_text(config, KILN_NEW_DATA, "images", images);
    kiln_new_set_text(config, KILN_NEW_DATA, "masks", masks);
    kiln_new_set(config, KILN_NEW_MODEL, "width", "16");
}

KilnStatus kiln_new_scale_images(KilnNewConfig *config, const char *const *paths, int64_t n,
                                 int64_t multiple, int64_t largest, bool *ret_damaged,
                                 KilnError *err)
{
    Sizes sizes;
    KilnStatus status = read_sizes(config, list_path, &paths, n, &sizes, err);
    int64_t middle[2], to[2];

    if (status < 0)
        return status;
    for (int k = 0; k < 2; k++)
        middle[k] = (sizes.low[k] + sizes.high[k]) / 2;
    for (int k = 0; k < 2; k++) {
        const double longest = (double)(middle[0] > middle[1] ? middle[0] : middle[1]);
        const double scale = longest > (double)largest ? (double)largest / longest : 1.0;

        to[k] = (int64_t)((double)middle[k] * scale / (double)multiple + 0.5) * multiple;
        to[k] = to[k] < multiple ? multiple : to[k];
    }
    const bool differ = sizes.low[0] != sizes.high[0] || sizes.low[1] != sizes.high[1];
    say_sizes(config, &sizes, differ);
    if (sizes.grey == sizes.looked)
        kiln_new_set(config, KILN_NEW_DATA, "channels", "1");
    kiln_new_set(config, KILN_NEW_DATA, "size", "[%lld, %lld]  # all are scaled to this",
                 (long long)to[0], (long long)to[1]);
    if (differ)
        kiln_new_set(config, KILN_NEW_DATA, "letterbox",
                     "true  # keep their proportions, and pad with grey");
    *ret_damaged = sizes.bad > 0;
    return KILN_OK;
}

/* U-Nets need sides that are multiples of 16. */
static KilnStatus set_mask_size(KilnNewConfig *config, KilnImageSet *images, KilnError *err)
{
    enum { MULTIPLE = 16, LARGEST = 256 };
    Sizes sizes;
    KilnStatus status = read_sizes(config, path_at, images, images->count, &sizes, err);

    if (status < 0)
        return status;
    int64_t to[2];
    for (int k = 0; k < 2; k++) {
        to[k] = kiln_min_i64((sizes.low[k] + sizes.high[k]) / 2, LARGEST) / MULTIPLE * MULTIPLE;
        to[k] = to[k] < MULTIPLE ? MULTIPLE : to[k];
    }
    say_sizes(config, &sizes, sizes.low[0] != sizes.high[0] || sizes.low[1] != sizes.high[1]);
    if (sizes.grey == sizes.looked)
        kiln_new_set(config, KILN_NEW_DATA, "channels", "1");
    if (to[0] != sizes.low[0] || to[1] != sizes.low[1] || to[0] != sizes.high[0] ||
        to[1] != sizes.high[1])
        kiln_new_set(config, KILN_NEW_DATA, "size", "[%lld, %lld]  # all are scaled to this",
                     (long long)to[0], (long long)to[1]);
    return KILN_OK;
}

KilnStatus kiln_new_masks(KilnNewConfig *config, const char *root, const char *images,
                          const char *masks, KilnError *err)
{
    KilnMaskPairs pairs = { 0 };
    bool used[VALUES] = { false };
    KilnStatus status = kiln_mask_pairs_scan(in_split(config, root, images, "train"),
                                             in_split(config, root, masks, "train"), config->poll,
                                             &pairs, err);

    if (status >= 0)
        status = read_values(config, &pairs, used, err);
    if (status >= 0) {
        fill_masks(config, root, images, masks, pairs.images.count);
        status = set_mask_size(config, &pairs.images, err);
    }
    if (status >= 0)
        status = set_mask_classes(config, used, err);
    kiln_mask_pairs_release(&pairs);
    return status;
}
