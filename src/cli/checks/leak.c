/* Memory that is lost each time, as the C library counts it. */
#include "cli/checks/leak.h"

#include <malloc.h>

void kiln_leak_note(KilnLeak *leak)
{
    const struct mallinfo2 now = mallinfo2();

    if (leak->n < KILN_LEAK_ROUNDS)
        leak->bytes[leak->n++] = (int64_t)(now.uordblks + now.hblkhd);
}

bool kiln_leak_is_known(const KilnLeak *leak)
{
    return leak->n > 0 && leak->bytes[leak->n - 1] > 0;
}

int64_t kiln_leak_bytes(const KilnLeak *leak)
{
    const int first = leak->n / 2; /* the rounds after this one count */
    int64_t least = INT64_MAX;

    for (int i = first; i < leak->n; i++)
        if (i > 0 && leak->bytes[i] - leak->bytes[i - 1] < least)
            least = leak->bytes[i] - leak->bytes[i - 1];
    return least != INT64_MAX && least > 0 ? least : 0;
}
