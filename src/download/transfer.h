/* One request to a web server. */
#ifndef KILN_DOWNLOAD_TRANSFER_H
#define KILN_DOWNLOAD_TRANSFER_H

#include "kiln/base.h"

typedef struct KilnTransfer {
    const char *url;
    const char *what; /* for `poll` */
    const KilnPoll *poll;
    int fd;       /* open for appending */
    int64_t have; /* bytes in it: the server is asked for the others */
    /* Set where it fails. */
    bool may_pass;   /* the same request may succeed later */
    bool from_start; /* the server only sends whole files */
} KilnTransfer;

/* KILN_E_MISSING: built without libcurl, or it can't be loaded. */
KILN_NODISCARD KilnStatus kiln_transfer_supported(KilnError *err);
/* Append to `fd` what the server sends. Redirections are followed, to http and https only. */
KILN_NODISCARD KilnStatus kiln_transfer(KilnTransfer *transfer, KilnError *err);

#endif
