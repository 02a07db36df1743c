/* Loads batches of a folder of images, augmented as for ImageNet: bench/images/load.py compares
 * with torchvision's DataLoader.
 *
 *     build/release/bench/images/load FOLDER WORKERS EPOCHS
 *     build/release/bench/images/load --decode FOLDER WORKERS EPOCHS
 *
 * --decode is the floor: JPEG files decoded whole by libjpeg-turbo alone, from memory, in so many
 * threads. Prints images per second, of the best epoch. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/system/file.h"
#include "kiln/tools/clock.h"
#include "tests/support/data/data_fixture.h"
#include "train/loader/loader.h"

static const char transforms[] =
    "transforms: [{ _target_: transform/random_resized_crop, size: 224 }, { _target_: "
    "transform/normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] }]";

static void die(const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(1);
}

/* All batches of an epoch. */
static int64_t take_all(KilnLoader *loader, int64_t epoch)
{
    KilnBatch batch = { 0 };
    KilnError err = { 0 };
    int64_t images = 0;

    if (kiln_loader_start(loader, epoch, 0, &err) < 0)
        die(err.text);
    do {
        if (kiln_loader_next(loader, &batch, &err) < 0)
            die(err.text);
        images += batch.size;
    } while (batch.size > 0);
    return images;
}

static double load(const char *folder, int workers, int epochs)
{
    KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = 1 };
    KilnLoaderSpec spec = { .batch_size = 64, .limit = -1, .seed = 1, .workers = workers };
    char options[4096];
    Built data, shuffle;
    KilnDataSpec features;
    KilnLoader *loader = NULL;
    KilnError err = { 0 };
    double best = 0.0;

    snprintf(options, sizeof(options), "root: \"%s\", val_fraction: 0, %s", folder, transforms);
    if (open_data("image_folder", options, &context, &data, &err) < 0 ||
        build_yaml(&shuffle, KILN_KIND_SAMPLER, "shuffle", "", &err) < 0)
        die(err.text);
    if (data_ops(&data)->spec(data.instance, &features, &err) < 0)
        die(err.text);
    spec.data = &features;
    spec.dataset = open_split(&data, KILN_TRAIN);
    spec.sampler = shuffle.instance;
    if (kiln_sampler_setup(&spec, &err) < 0 || kiln_loader_new(&spec, &loader, &err) < 0)
        die(err.text);
    for (int epoch = 0; epoch < epochs; epoch++) {
        const double start = kiln_clock();
        const double rate = (double)take_all(loader, epoch) / (kiln_clock() - start);

        best = rate > best ? rate : best;
    }
    kiln_loader_free(loader);
    built_free(&shuffle);
    built_free(&data);
    return best;
}

static void decode_one(const char *data, size_t size)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;

    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, (const unsigned char *)data, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg_start_decompress(&jpeg);
    JSAMPROW row = malloc((size_t)jpeg.output_width * (size_t)jpeg.output_components);
    while (jpeg.output_scanline < jpeg.output_height)
        jpeg_read_scanlines(&jpeg, &row, 1);
    jpeg_destroy_decompress(&jpeg);
    free(row);
}

static double decode(const char *folder, int workers, int epochs)
{
    KilnImageSet set = { 0 };
    KilnError err = { 0 };
    char train[4096];
    double best = 0.0;

    snprintf(train, sizeof(train), "%s/train", folder);
    if (kiln_image_set_scan(train, NULL, NULL, &set, &err) < 0)
        die(err.text);
    char **data = calloc((size_t)set.count, sizeof(*data));
    size_t *sizes = calloc((size_t)set.count, sizeof(*sizes));
    for (int64_t i = 0; i < set.count; i++)
        if (kiln_file_read(set.paths[i], 1 << 30, &data[i], &sizes[i], &err) < 0)
            die(err.text);
    for (int epoch = 0; epoch < epochs; epoch++) {
        const double start = kiln_clock();

#pragma omp parallel for num_threads(workers) schedule(dynamic, 8)
        for (int64_t i = 0; i < set.count; i++)
            decode_one(data[i], sizes[i]);
        const double rate = (double)set.count / (kiln_clock() - start);
        best = rate > best ? rate : best;
    }
    for (int64_t i = 0; i < set.count; i++)
        free(data[i]);
    free(data);
    free(sizes);
    kiln_image_set_release(&set);
    return best;
}

int main(int argc, char **argv)
{
    const bool decodes = argc == 5 && strcmp(argv[1], "--decode") == 0;

    if (argc != 4 && !decodes)
        die("usage: load [--decode] FOLDER WORKERS EPOCHS");
    argv += decodes;
    printf("%.0f\n", (decodes ? decode : load)(argv[1], atoi(argv[2]), atoi(argv[3])));
    return 0;
}
