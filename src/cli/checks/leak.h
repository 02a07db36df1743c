/* Finds memory that is lost each time that something is done. */
#ifndef KILN_CLI_CHECKS_LEAK_H
#define KILN_CLI_CHECKS_LEAK_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_LEAK_ROUNDS = 16 };

/* Allocated bytes after each round; zeroed before. */
typedef struct KilnLeak {
    int64_t bytes[KILN_LEAK_ROUNDS];
    int n;
} KilnLeak;

/* Whether allocated bytes are known; not those of AddressSanitizer's allocator. */
bool kiln_leak_is_known(const KilnLeak *leak);
/* Note what is allocated now, after a round. */
void kiln_leak_note(KilnLeak *leak);
/* Bytes that each of the last rounds has not freed; 0: not every one grew. The first rounds do not
 * count: caches and pools fill. */
int64_t kiln_leak_bytes(const KilnLeak *leak);

#endif
