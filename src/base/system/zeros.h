/* Large zeroed memory that costs nothing before it is used. */
#ifndef KILN_BASE_SYSTEM_ZEROS_H
#define KILN_BASE_SYSTEM_ZEROS_H

#include <stddef.h>

/* At least `bytes` zero bytes at a multiple of 64, never NULL for 0; NULL when memory
 * is out. Pages come from the system when they are first written: huge ones for large
 * blocks, where the system has them. Owned by the caller (kiln_zeros_free). */
void *kiln_zeros(size_t bytes);
/* Accepts NULL. */
void kiln_zeros_free(void *zeros);

#endif
