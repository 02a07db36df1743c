/* Encodes a text with several threads: bench/text/tokenizer.py compares with Hugging Face's library.
 *
 *     build/release/bench/text/tokenizer TOKENIZER.json TEXT COPIES THREADS
 *
 * Each line with its end is one text, as there. Prints seconds, bytes and tokens. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "kiln.h"

typedef struct Work {
    const KilnTokenPipeline *pipeline;
    const char *text;
    size_t size;
    int copies, threads;
} Work;

/* Every thread takes every n-th line. */
static int64_t encode_part(const Work *work, int thread)
{
    KilnEncoding encoding = { 0 };
    KilnError err = { 0 };
    int64_t tokens = 0, number = 0;

    for (int copy = 0; copy < work->copies; copy++)
        for (const char *line = work->text, *end = work->text + work->size, *next; line < end;
             line = next) {
            next = memchr(line, '\n', (size_t)(end - line));
            next = next != NULL ? next + 1 : end;
            if (number++ % work->threads != thread)
                continue;
            const KilnTokenizerInput input = { .text = { line, (size_t)(next - line) },
                                               .add_special_tokens = true,
                                               .offsets = KILN_OFFSETS_CHARACTERS };
            if (kiln_token_pipeline_encode(work->pipeline, &input, &encoding, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
            }
            tokens += (int64_t)encoding.n;
        }
    kiln_encoding_release(&encoding);
    return tokens;
}

int main(int argc, char **argv)
{
    KilnTokenPipeline *pipeline = NULL;
    KilnError err = { 0 };
    char *text = NULL;
    size_t size = 0;
    int64_t tokens = 0;

    if (argc != 5) {
        fprintf(stderr, "usage: tokenizer TOKENIZER.json TEXT COPIES THREADS\n");
        return 2;
    }
    if (kiln_token_pipeline_open(argv[1], &pipeline, &err) < 0 ||
        kiln_file_read(argv[2], (size_t)1 << 30, &text, &size, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const Work work = { pipeline, text, size, atoi(argv[3]), atoi(argv[4]) };
    const double start = kiln_clock();
#pragma omp parallel for num_threads(work.threads) reduction(+ : tokens) schedule(static, 1)
    for (int thread = 0; thread < work.threads; thread++)
        tokens += encode_part(&work, thread);
    printf("%.4f %zu %lld\n", kiln_clock() - start, size * (size_t)work.copies, (long long)tokens);
    kiln_token_pipeline_free(pipeline);
    free(text);
    return 0;
}
