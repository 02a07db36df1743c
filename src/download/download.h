/* Files from a web server. */
#ifndef KILN_DOWNLOAD_DOWNLOAD_H
#define KILN_DOWNLOAD_DOWNLOAD_H

#include "kiln/base.h"

typedef struct KilnDownload {
    const char *url;    /* http:// or https:// */
    const char *sha256; /* of the whole file, in hexadecimal; "": not known */
    const char *path;   /* where the file goes */
    const char *what;   /* for `poll`: "downloading train.csv" */
} KilnDownload;

/* Fetch the file, unless it is there. It grows as PATH.part, which is locked, so that one process
 * fetches it and the others wait; a complete one is compared with its sum, synced and renamed.
 * A part that is left (by an interruption, say) is continued by the next call where the sum is
 * known, and else begun again. Failures that may pass are tried three times.
 * KILN_E_MISSING: built without libcurl, or it can't be loaded. KILN_E_IO: the server can't be
 * reached or refuses, or the disk is full. KILN_E_FORMAT: the sum differs; the part is removed. */
KILN_NODISCARD KilnStatus kiln_download(const KilnDownload *download, const KilnPoll *poll,
                                        KilnError *err);

#endif
