/* Event files, the format that TensorBoard reads: records of protobuf messages. Needs
 * libprotobuf-c when kiln is built. */
#ifndef KILN_KILN_FILES_EVENTS_H
#define KILN_KILN_FILES_EVENTS_H

#include "kiln/logger.h"

typedef enum KilnEventKind {
    KILN_EVENT_SCALAR,
    KILN_EVENT_HISTOGRAM,
    KILN_EVENT_IMAGE,
    KILN_EVENT_TEXT,       /* shown as Markdown */
    KILN_EVENT_EXPERIMENT, /* of the HPARAMS page: which hyperparameters and metrics there are */
    KILN_EVENT_SESSION,    /* ...the values of the hyperparameters, at the start */
    KILN_EVENT_SESSION_END /* ...how it ended */
} KilnEventKind;

/* One value; everything is borrowed for the call. */
typedef struct KilnEvent {
    KilnEventKind kind;
    const char *tag; /* of scalars, histograms, images, texts: "train/loss" */
    int64_t step;
    double wall_time; /* seconds since 1970 */
    double scalar;    /* kept as f32, as the format has it */
    const KilnHistogram *histogram;
    int64_t height, width, channels; /* of an image */
    const uint8_t *png;
    size_t png_size;
    const char *text;
    const KilnLogRun *run; /* EXPERIMENT, SESSION */
    bool failed;           /* SESSION_END */
} KilnEvent;

typedef struct KilnEvents KilnEvents;

/* KILN_OK when this build can write event files; else KILN_E_MISSING and what to do. */
KILN_API KILN_NODISCARD KilnStatus kiln_events_supported(KilnError *err);
/* Open the file `path` to continue after its first `offset` bytes (the rest is cut off); 0, or
 * more than there are: a new file, which begins with the format's version. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_events_open(const char *path, int64_t offset,
                                                    KilnEvents **ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_events_add(KilnEvents *events, const KilnEvent *event,
                                                   KilnError *err);
/* Handed to the system after this. */
KILN_API KILN_NODISCARD KilnStatus kiln_events_flush(KilnEvents *events, KilnError *err);
/* Bytes of the file so far. */
KILN_API int64_t kiln_events_offset(const KilnEvents *events);
/* Accepts NULL; what was not flushed may be lost. */
KILN_API void kiln_events_close(KilnEvents *events);

#endif
