/* SHA-256 (FIPS 180-4), for what must not be forged; other checksums are xxHash. */
#ifndef KILN_BASE_SHA256_H
#define KILN_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { KILN_SHA256_TEXT = 65 };

typedef struct KilnSha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[64];
} KilnSha256;

void kiln_sha256_init(KilnSha256 *hash);
void kiln_sha256_add(KilnSha256 *hash, const void *data, size_t size);
/* The sum of all that was added, in hexadecimal; `hash` is used up. */
void kiln_sha256_text(KilnSha256 *hash, char ret[KILN_SHA256_TEXT]);

#endif
