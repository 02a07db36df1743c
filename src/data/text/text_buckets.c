/* The lengths that batches of texts are padded to. */
#include "kiln/array.h"
#include "kiln/tools/text_data.h"

void kiln_text_buckets_init(KilnTextBuckets *buckets, int64_t max_length)
{
    buckets->n = 0;
    for (int64_t length = 8; length < max_length && buckets->n + 1 < KILN_COUNT(buckets->lengths);
         length += length < 32 ? 4 : length / 16 * 4)
        buckets->lengths[buckets->n++] = length;
    buckets->lengths[buckets->n++] = max_length;
}

void kiln_text_buckets_set(const KilnTextBuckets *buckets, KilnLoading *loading)
{
    if (loading->buckets_count > 0)
        return;
    loading->buckets = buckets->lengths;
    loading->buckets_count = buckets->n;
}
