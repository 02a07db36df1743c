/* Checks a transform on made-up images: the declared shape, finite values, and the same random
 * numbers giving the same image. */
#include <math.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"

static const int64_t sizes[][3] = { { 72, 80, 3 }, { 65, 90, 1 }, { 64, 64, 3 } };

typedef struct Images {
    KilnCase *self;
    KilnInstance *transform;
    const KilnTransformOps *ops;
} Images;

static bool fill(KilnImage *image, const int64_t size[3])
{
    if (kiln_image_resize_buffer(image, size[0], size[1], size[2], NULL) < 0)
        return false;
    for (int64_t i = 0; i < size[0] * size[1] * size[2]; i++)
        image->data[i] = (float)((i * 7 + i / 13) % 256) / 255.0F;
    return true;
}

static KilnStatus apply(const Images *of, KilnImage *image, KilnImage *spare, uint64_t seed,
                        bool training, KilnError *err)
{
    const int64_t size[3] = { image->height, image->width, image->channels };
    KilnImageWindow window = { 0 };
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_AUGMENT, 0, 0);
    if (of->ops->apply != NULL)
        return KILN_CALLED(of->transform, "apply",
                           of->ops->apply(of->transform, image, spare, &rng, training, err), err);
    KilnStatus status =
        KILN_CALLED(of->transform, "window",
                    of->ops->window(of->transform, size, &rng, training, &window, err), err);
    if (status >= 0)
        status = kiln_image_scale_part(image, &window, spare, err);
    if (status >= 0) {
        const KilnImage swap = *image;

        *image = *spare;
        *spare = swap;
    }
    return status;
}

/* The size that it declares; false: an error was reported, or the size is refused. */
static bool declared(const Images *of, const int64_t from[3], int64_t ret[3])
{
    KilnError err = { 0 };

    memcpy(ret, from, 3 * sizeof(*ret));
    if (of->ops->shape == NULL)
        return true;
    return KILN_CALLED(of->transform, "shape", of->ops->shape(of->transform, ret, &err), &err) >= 0;
}

static void check_result(const Images *of, const KilnImage *image, const int64_t want[3])
{
    const int64_t got[3] = { image->height, image->width, image->channels };

    for (int i = 0; i < 3; i++)
        if (want[i] >= 0 && want[i] != got[i])
            return kiln_case_fail(of->self, "`shape` gives the size after `apply`",
                                  "`shape` says %lldx%lldx%lld, the image is %lldx%lldx%lld",
                                  (long long)want[0], (long long)want[1], (long long)want[2],
                                  (long long)got[0], (long long)got[1], (long long)got[2]);
    for (int64_t i = 0; i < got[0] * got[1] * got[2]; i++)
        if (!isfinite(image->data[i]))
            return kiln_case_fail(of->self, "write every pixel", "pixel value %lld is not finite",
                                  (long long)i);
}

static bool same(const KilnImage *a, const KilnImage *b)
{
    return a->height == b->height && a->width == b->width && a->channels == b->channels &&
           memcmp(a->data, b->data,
                  (size_t)(a->height * a->width * a->channels) * sizeof(*a->data)) == 0;
}

/* One image, twice with the same random numbers. */
static bool check_image(const Images *of, const int64_t size[3], uint64_t seed, bool training)
{
    KilnImage images[2] = { { 0 } }, spare = { 0 };
    int64_t want[3];
    KilnError err = { 0 };
    bool refused = !declared(of, size, want);

    for (int i = 0; i < 2 && !refused && !kiln_case_failed(of->self); i++) {
        if (!fill(&images[i], size))
            break;
        const KilnStatus status = apply(of, &images[i], &spare, seed, training, &err);
        refused = status < 0;
        if (status < 0 && err.text[0] == '\0')
            kiln_case_fail(of->self, "fill err", "failed and gave no reason");
        else if (status >= 0)
            check_result(of, &images[i], want);
    }
    if (!refused && !kiln_case_failed(of->self) && !same(&images[0], &images[1]))
        kiln_case_fail(of->self, "draw random numbers from the given stream alone",
                       "the same random numbers give another image the second time");
    kiln_image_release(&images[0]);
    kiln_image_release(&images[1]);
    kiln_image_release(&spare);
    return !refused;
}

void kiln_contract_images(KilnCase *self)
{
    enum { SEEDS = 20 };
    static const double mean[] = { 0.4, 0.5, 0.6 }, std[] = { 0.2, 0.25, 0.3 };
    KilnCaseInstance built;
    KilnError err = { 0 };
    int done = 0;

    if (!kiln_case_open(self, &built))
        return;
    Images of = { .self = self,
                  .transform = built.instance,
                  .ops = self->component->ops.transform };
    if (of.ops->apply == NULL && of.ops->window == NULL)
        kiln_case_fail(self, "set one of them", "it has neither `apply` nor `window`");
    for (size_t i = 0; i < KILN_COUNT(sizes) && !kiln_case_failed(self); i++) {
        if (of.ops->needs_statistics != NULL && of.ops->needs_statistics(of.transform) &&
            of.ops->set_statistics(of.transform, mean, std, sizes[i][2], &err) < 0)
            kiln_case_fail_with(self, &err);
        for (uint64_t seed = 0; seed < SEEDS && !kiln_case_failed(self); seed++)
            done += check_image(&of, sizes[i], seed, seed % 4 != 3);
    }
    if (done == 0)
        kiln_case_skip(self, "add transform.OPTION=VALUE to the command",
                       "it takes none of the images (72x80x3, 65x90x1, 64x64x3)");
    else
        kiln_case_pass(self, "%d images, each twice", done);
    kiln_case_close(&built);
}
