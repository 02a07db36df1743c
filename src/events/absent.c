/* What stands for the encoder in a build without libprotobuf-c. */
#include "events/encode.h"

#ifndef KILN_WITH_PROTOBUF

KilnStatus kiln_events_supported(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "this kiln was built without libprotobuf-c, which writing TensorBoard's "
                          "event files needs: install libprotobuf-c-dev and protobuf-c-compiler "
                          "and build it again, or use the loggers csv or jsonl");
}

KilnStatus kiln_event_encode_version(double wall_time, KilnEventBytes *ret, KilnError *err)
{
    (void)wall_time;
    (void)ret;
    return kiln_events_supported(err);
}

KilnStatus kiln_event_encode(const KilnEvent *event, KilnEventBytes *ret, KilnError *err)
{
    (void)event;
    (void)ret;
    return kiln_events_supported(err);
}

#endif
