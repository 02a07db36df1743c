/* Reads a CSV file to batches: bench/table/read.py compares with pandas.
 *
 *     build/release/bench/table/read FILE.csv TARGET
 *
 * Prints seconds of: the floor (one thread looks at each byte for line ends), the table (rows
 * found, read, kinds inferred, scaled by the training rows), and all batches of 256 samples; then
 * rows and samples. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/threads.h"
#include "kiln.h"
#include "kiln/tools/clock.h"
#include "kiln/tools/table_data.h"

enum { BATCH = 256 };

static void die(const KilnError *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static double floor_of(const char *path, int64_t *ret_lines)
{
    const double start = kiln_clock();
    KilnError err = { 0 };
    char *text = NULL;
    size_t size = 0;

    if (kiln_file_read(path, (size_t)1 << 32, &text, &size, &err) < 0)
        die(&err);
    *ret_lines = 0;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + size - at))) != NULL; at++)
        ++*ret_lines;
    free(text);
    return kiln_clock() - start;
}

/* Threads take batches in turn, as the loader's do. */
typedef struct Job {
    KilnDataset dataset;
    KilnDataSpec spec;
    atomic_int_least64_t next;
} Job;

static void *read_some(void *argument)
{
    Job *job = *(Job *const *)argument;
    char *room[4] = { 0 };
    KilnRng rng;
    int64_t from;

    for (size_t f = 0; f < job->spec.n_features; f++)
        room[f] = calloc(BATCH, (size_t)kiln_shape_count(&job->spec.features[f].shape) * 4);
    kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, 0);
    while ((from = atomic_fetch_add(&job->next, BATCH)) < job->dataset.count)
        for (int64_t i = from; i < from + BATCH && i < job->dataset.count; i++) {
            void *at[4];
            KilnError err = { 0 };
            KilnSample sample = { .data = at };

            for (size_t f = 0; f < job->spec.n_features; f++)
                at[f] = room[f] + (size_t)(i - from) *
                                      (size_t)kiln_shape_count(&job->spec.features[f].shape) * 4;
            if (job->dataset.get(job->dataset.ctx, i, &rng, &sample, &err) < 0)
                die(&err);
        }
    for (size_t f = 0; f < job->spec.n_features; f++)
        free(room[f]);
    return NULL;
}

static int64_t read_batches(KilnTableData *data, KilnSplit split)
{
    Job job = { .next = 0 }, *shared[] = { &job, &job };

    kiln_table_data_spec(data, &job.spec);
    kiln_table_data_dataset(data, split, &job.dataset);
    kiln_run_in_threads(KILN_COUNT(shared), read_some, shared, sizeof(shared[0]));
    return job.dataset.count;
}

int main(int argc, char **argv)
{
    static const char *const missing[] = { "NA", "nan" };
    char *train[] = { argc > 1 ? argv[1] : NULL };
    const KilnTextFiles files = { .train = train, .train_count = 1 };
    const KilnTableSource source = { .files = &files,
                                     .target = argc > 2 ? argv[2] : NULL,
                                     .missing_values = missing,
                                     .n_missing_values = 2,
                                     .scaling = KILN_SCALING_STANDARD,
                                     .val_fraction = 0.1,
                                     .stratify = true };
    const KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = 1 };
    KilnTableData *data = NULL;
    KilnError err = { 0 };
    int64_t lines = 0, samples = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: read FILE.csv TARGET\n");
        return 2;
    }
    const double floor = floor_of(argv[1], &lines), start = kiln_clock();
    if (kiln_table_data_open(&source, &context, &data, &err) < 0)
        die(&err);
    const double table = kiln_clock() - start;
    samples = read_batches(data, KILN_TRAIN) + read_batches(data, KILN_VAL);
    printf("%.3f %.3f %.3f %lld %lld\n", floor, table, kiln_clock() - start - table,
           (long long)lines, (long long)samples);
    kiln_table_data_free(data);
    return 0;
}
