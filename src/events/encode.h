/* Events as protobuf messages. */
#ifndef KILN_EVENTS_ENCODE_H
#define KILN_EVENTS_ENCODE_H

#include "kiln/files/events.h"

/* The bytes of a message, owned by the caller (free). */
typedef struct KilnEventBytes {
    uint8_t *data;
    size_t size;
} KilnEventBytes;

/* The first message of a file: its format's version. */
KILN_NODISCARD KilnStatus kiln_event_encode_version(double wall_time, KilnEventBytes *ret,
                                                    KilnError *err);
KILN_NODISCARD KilnStatus kiln_event_encode(const KilnEvent *event, KilnEventBytes *ret,
                                            KilnError *err);

#endif
