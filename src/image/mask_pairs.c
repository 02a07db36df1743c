/* Finds pairs of image and mask files. Decodes nothing. */
#include "kiln/images/image_masks.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "data/left_out.h"
#include "data/raw/raw_input.h"

static const char *const png[] = { ".png", NULL };

/* The names of the files in a folder that have some endings, in byte order and by their stems. */
typedef struct Names {
    char **all;
    size_t n_all;
    const char **list, **by_stem; /* of `all` */
    size_t n;
} Names;

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t stem_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL ? (size_t)(dot - name) : strlen(name);
}

static int compare_stems(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const size_t stem_x = stem_of(x), stem_y = stem_of(y);
    const int order = strncmp(x, y, stem_x < stem_y ? stem_x : stem_y);

    return order != 0 ? order : (stem_x > stem_y) - (stem_x < stem_y);
}

/* `others`: what counts the other files; NULL: nothing does. */
static KilnStatus list(const char *folder, const char *const *endings, KilnLeftOut *others,
                       Names *ret, KilnError *err)
{
    KilnStatus status = kiln_dir_list(folder, &ret->all, &ret->n_all, err);

    if (status < 0)
        return status;
    ret->list = calloc(ret->n_all + 1, sizeof(*ret->list));
    ret->by_stem = calloc(ret->n_all + 1, sizeof(*ret->by_stem));
    if (ret->list == NULL || ret->by_stem == NULL)
        return kiln_error_nomem(err, ret->n_all * sizeof(*ret->list));
    for (size_t i = 0; i < ret->n_all; i++) {
        const char *name = ret->all[i];

        if (name[0] == '.')
            continue;
        if (stem_of(name) > 0 && kiln_raw_has_ending(name, endings))
            ret->list[ret->n++] = name;
        else if (others != NULL &&
                 !kiln_left_out_add_file(others, "images are .png, .jpg, .jpeg and .webp files",
                                         folder, name))
            return kiln_error_nomem(err, strlen(name));
    }
    qsort(ret->list, ret->n, sizeof(*ret->list), compare);
    memcpy(ret->by_stem, ret->list, ret->n * sizeof(*ret->list));
    qsort(ret->by_stem, ret->n, sizeof(*ret->by_stem), compare_stems);
    return KILN_OK;
}

static void names_release(Names *names)
{
    kiln_names_free(names->all, names->n_all);
    free(names->list);
    free(names->by_stem);
}

/* The name with the stem of another; NULL: there is none. */
static const char *find(const Names *names, const char *like)
{
    const char **found = bsearch(&like, names->by_stem, names->n, sizeof(*names->by_stem),
                                 compare_stems);

    return found != NULL ? *found : NULL;
}

static KilnStatus pair_up(KilnArena *arena, const char *image_folder, const char *mask_folder,
                          const Names *images, const Names *masks, const KilnPoll *poll,
                          KilnMaskPairs *ret, KilnError *err)
{
    const char **image_paths = (const char **)ret->images.paths;
    const char **mask_paths = (const char **)ret->masks;

    for (size_t i = 0; i < images->n; i++) {
        const char *name = images->list[i], *mask = find(masks, name);

        if (kiln_poll_check(poll, "finding masks", (int64_t)i, (int64_t)images->n, err) < 0)
            return KILN_E_INTERRUPTED;
        if (mask == NULL)
            return kiln_error_set(err, KILN_E_FORMAT, "%s/%s has no mask: expected %s/%.*s.png",
                                  image_folder, name, mask_folder, (int)stem_of(name), name);
        image_paths[i] = kiln_arena_printf(arena, "%s/%s", image_folder, name);
        mask_paths[i] = kiln_arena_printf(arena, "%s/%s", mask_folder, mask);
        if (image_paths[i] == NULL || mask_paths[i] == NULL)
            return kiln_error_nomem(err, strlen(mask_folder));
    }
    ret->images.count = (int64_t)images->n;
    return KILN_OK;
}

/* Masks that no image has. */
static KilnStatus leave_out(KilnArena *arena, const char *mask_folder, const Names *images,
                            const Names *masks, KilnMaskPairs *ret, KilnError *err)
{
    KilnOmission omission = { .what = "masks", .reason = "no image has their names" };

    for (size_t i = 0; i < masks->n; i++) {
        if (find(images, masks->list[i]) != NULL)
            continue;
        if (omission.count++ == 0)
            omission.example = kiln_arena_printf(arena, "%s/%s", mask_folder, masks->list[i]);
    }
    if (omission.count == 0)
        return KILN_OK;
    KilnOmission *kept = kiln_arena_alloc(arena, sizeof(*kept));
    if (kept == NULL || omission.example == NULL)
        return kiln_error_nomem(err, sizeof(*kept));
    *kept = omission;
    ret->no_images = kept;
    return KILN_OK;
}

static KilnStatus scan(const char *image_folder, const char *mask_folder, Names *images,
                       Names *masks, const KilnPoll *poll, KilnMaskPairs *ret, KilnError *err)
{
    KilnArena *arena = calloc(1, sizeof(*arena));
    KilnLeftOut others = { .arena = arena };

    ret->memory = arena;
    if (arena == NULL)
        return kiln_error_nomem(err, sizeof(*arena));
    KilnStatus status = list(image_folder, kiln_raw_image.endings, &others, images, err);
    if (status >= 0)
        status = list(mask_folder, png, NULL, masks, err);
    if (status < 0)
        return status;
    if (images->n == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: no .png, .jpg, .jpeg or .webp files",
                              image_folder);
    ret->images.left_out = others.list;
    ret->images.n_left_out = others.n;
    ret->images.paths = calloc(images->n, sizeof(char *));
    ret->masks = calloc(images->n, sizeof(char *));
    if (ret->images.paths == NULL || ret->masks == NULL)
        return kiln_error_nomem(err, images->n * sizeof(char *));
    status = pair_up(arena, image_folder, mask_folder, images, masks, poll, ret, err);
    return status < 0 ? status : leave_out(arena, mask_folder, images, masks, ret, err);
}

KilnStatus kiln_mask_pairs_scan(const char *images, const char *masks, const KilnPoll *poll,
                                KilnMaskPairs *ret, KilnError *err)
{
    Names image_names = { 0 }, mask_names = { 0 };
    KilnMaskPairs pairs = { 0 };
    KilnStatus status = scan(images, masks, &image_names, &mask_names, poll, &pairs, err);

    names_release(&image_names);
    names_release(&mask_names);
    if (status < 0)
        kiln_mask_pairs_release(&pairs);
    else
        *ret = pairs;
    return status;
}

void kiln_mask_pairs_release(KilnMaskPairs *pairs)
{
    free((void *)pairs->images.paths);
    free((void *)pairs->masks);
    if (pairs->memory != NULL)
        kiln_arena_release(pairs->memory);
    free(pairs->memory);
    *pairs = (KilnMaskPairs) { 0 };
}
