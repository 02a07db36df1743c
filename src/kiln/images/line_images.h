/* What datamodules of images of text lines share: the characters as classes of connectionist
 * temporal classification, collected from the training lines and saved with a checkpoint; the
 * features; batches of lines of similar width; images of a user.
 *
 * If the state begins with a KilnLineImages, the functions for KilnDataModuleOps are ready. In
 * init: kiln_line_images_init(). In setup: kiln_line_images_open(), kiln_line_images_collect() for
 * each training text, kiln_line_images_ready() (datamodules/text_line_list.c). */
#ifndef KILN_LINE_IMAGES_H
#define KILN_LINE_IMAGES_H

#include "kiln/image.h"
#include "kiln/tools/name_list.h"
#include "kiln/tools/text_data.h"

/* Members of a datamodule's options struct, and their rows in the options table. */
#define KILN_LINE_OPTIONS int64_t height, max_width
#define KILN_LINE_FIELDS(T)                                                                        \
    KILN_FIELD_I64(T, height, "32", 8, 1024, "height that lines have, pixels"),                    \
        KILN_FIELD_I64(T, max_width, "512", 32, 16384,                                             \
                       "largest width of a line of that height, pixels")

/* Numbers of the features in KilnSample. */
enum {
    KILN_LINE_PIXELS,     /* "line" f32 [width, height]: 0 is white, 1 is black */
    KILN_LINE_CHARACTERS, /* "characters" i32 [n]: classes */
    KILN_LINE_TEXT,       /* "true_text" */
    KILN_LINE_FEATURES
};

/* Reading is possible from any number of threads. A zeroed one may be released. */
typedef struct KilnLineImages {
    int64_t height, max_width;
    KilnNameList characters; /* character i is class i + 1; class 0 is the blank */
    bool collects;           /* there is no checkpoint that has them */
    const char **names;      /* of the classes */
    KilnTextBuckets buckets;
    KilnFeature features[KILN_LINE_FEATURES];
} KilnLineImages;

/* In init. */
KILN_API void kiln_line_images_init(KilnLineImages *lines, int64_t height, int64_t max_width);
/* Begin with the characters of the checkpoint if there is one (context->fitted), else with none.
 * KILN_E_MISSING in KILN_STAGE_PREDICT without one. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_open(KilnLineImages *lines,
                                                         const KilnDataContext *context,
                                                         KilnError *err);
/* Make the characters of a text classes, unless they come from a checkpoint. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_collect(KilnLineImages *lines, KilnString text,
                                                            KilnError *err);
/* No more texts follow. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_ready(KilnLineImages *lines, KilnError *err);
/* Free the memory. */
KILN_API void kiln_line_images_release(KilnLineImages *lines);

/* Check the text of a line that is `width` pixels wide: KILN_E_MISSING if it is empty, KILN_E_TYPE
 * for a control character, KILN_E_KEY for one that is no class, unless it may still be collected;
 * KILN_E_RANGE if it has more characters than the line has columns. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_check(const KilnLineImages *lines,
                                                          KilnString text, int64_t width,
                                                          bool collecting, KilnError *err);
/* The next character (code point) of a text: advances *rest and returns true; false: there is none
 * left. */
KILN_API bool kiln_line_images_next(KilnString *rest, KilnString *ret);
/* The texts of a split, and the widths of their lines. */
typedef struct KilnLineTexts {
    int64_t count;
    void *ctx;
    KilnString (*get)(void *ctx, int64_t i, int64_t *ret_width);
    const char *(*name)(void *ctx, int64_t i); /* for messages */
} KilnLineTexts;
/* For KilnDataModuleOps.check, after kiln_line_images_ready(): texts that are long for their lines,
 * rare characters, and those that training lacks. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_check_data(
    const KilnLineImages *lines, const KilnLineTexts texts[KILN_SPLIT_COUNT], const KilnPoll *poll,
    void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx, KilnError *err);
/* The number of its characters (code points). */
KILN_API int64_t kiln_line_images_count(KilnString text);
/* Write a text that was checked to the features "characters" and "true_text" of a sample, where
 * it has them. KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_write(const KilnLineImages *lines,
                                                          const char *text, KilnSample *sample,
                                                          KilnError *err);

/* The width that an image of that size has as a line, at least 4. KILN_E_SHAPE: above max_width. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_width(const KilnLineImages *lines,
                                                          int64_t height, int64_t width,
                                                          int64_t *ret, KilnError *err);
/* Read an image, grey and scaled to that width, to `ret` [width, height]. `max_pixels` as in
 * KilnPngForm. */
KILN_API KILN_NODISCARD KilnStatus kiln_line_images_read(const KilnLineImages *lines,
                                                         const KilnRawValue *image,
                                                         int64_t max_pixels, int64_t width,
                                                         float *ret, KilnError *err);

/* ---- For KilnDataModuleOps ------------------------------------------------------------------- */

KILN_API KilnStatus kiln_line_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err);
/* kiln_raw_image: an image of one line, dark on light. */
KILN_API size_t kiln_line_raw_fields(KilnInstance *self, const KilnRawField **ret);
KILN_API KilnStatus kiln_line_preprocess(KilnInstance *self, const KilnRawValue *values,
                                         KilnSample *sample, KilnError *err);
KILN_API KilnStatus kiln_line_save_preprocessing(KilnInstance *self, const char *dir,
                                                 KilnError *err);

/* KilnDataModuleOps.features. */
#define KILN_LINE_SPECS                                                                            \
    { .name = "line",                                                                              \
      .content = KILN_SEQUENCE,                                                                    \
      .dtype = KILN_F32,                                                                           \
      .axes = "columns height",                                                                    \
      .varies = true },                                                                            \
    {                                                                                              \
        .name = "characters", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "time",            \
        .varies = true                                                                             \
    }

#endif
