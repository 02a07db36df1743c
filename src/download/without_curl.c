/* What stands for downloads in a build without libcurl. */
#include "download/transfer.h"

#ifndef KILN_WITH_CURL

KilnStatus kiln_transfer_supported(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "this kiln was built without libcurl, which downloads files: install "
                          "libcurl4-openssl-dev and build it again");
}

KilnStatus kiln_transfer(KilnTransfer *transfer, KilnError *err)
{
    (void)transfer;
    return kiln_transfer_supported(err);
}

#endif
