/* Large zeroed memory that takes no pages before it is written. */
#ifndef KILN_BASE_SYSTEM_ZEROS_H
#define KILN_BASE_SYSTEM_ZEROS_H

#include <stddef.h>

/* At least `bytes` zero bytes, aligned to 64; NULL only when memory is out. The system provides
 * pages at the first write, huge ones for large blocks if it has them. Owned by the caller
 * (kiln_zeros_free). */
void *kiln_zeros(size_t bytes);
/* Accepts NULL. */
void kiln_zeros_free(void *zeros);

#endif
