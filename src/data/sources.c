/* The options of a file to download. */
#include "kiln/loading.h"

const KilnField kiln_source_fields[4] = {
    KILN_FIELD_STR(KilnSource, url, NULL, "address, https:// or http://"),
    KILN_FIELD_STR(KilnSource, sha256, "\"\"",
                   "SHA-256 sum of the file in hexadecimal; with it an interrupted download is "
                   "continued"),
    KILN_FIELD_PATH(KilnSource, to, NULL, "where the file goes"),
    KILN_FIELD_END,
};
