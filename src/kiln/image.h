/* Images for datamodules and transforms: decode, convert, resize. */
#ifndef KILN_IMAGE_H
#define KILN_IMAGE_H

#include "kiln/files/cache.h"
#include "kiln/files/tar.h"
#include "kiln/component.h"
#include "kiln/data.h"
#include "kiln/rng.h"

/* Height × width × channels floats in rows, 0..1 until a normalize transform. */
typedef struct KilnImage {
    int64_t height, width, channels;
    float *data;     /* owned by the image */
    size_t capacity; /* floats allocated; kept between uses */
} KilnImage;

/* Room for that size; contents undefined. A zeroed image is a valid start. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_resize_buffer(KilnImage *image, int64_t height,
                                                            int64_t width, int64_t channels,
                                                            KilnError *err);
KILN_API void kiln_image_release(KilnImage *image);

/* Pixels of the largest image that is read unless another limit is given; Pillow warns of more. A
 * small file can hold very many of one colour. */
#define KILN_IMAGE_MAX_PIXELS 89478485

/* What an image file is read as; it has the name of the first format. */
typedef struct KilnPngForm {
    int64_t channels;      /* 1: grey, 3: colour */
    int64_t height, width; /* scaled to; 0 or less: as the file is */
    int64_t max_pixels;    /* the option datamodule.max_pixels; 0: KILN_IMAGE_MAX_PIXELS */
} KilnPngForm;

/* Read an image file of any kind: PNG (grey, colour, palette, alpha, 1 to 16 bits), JPEG (grey,
 * colour, CMYK; also progressive, and with arithmetic coding), and WebP if kiln was built with
 * libwebp. Its content decides, not its name. Alpha is laid over black, 16 bits keep their
 * precision, and the image is turned upright as its EXIF orientation says. It is scaled as by
 * kiln_image_scale, row by row: memory is needed for the file, the result and a few rows (of
 * interlaced and progressive files, of WebP and of PNG of up to 16 MiB of pixels for the whole
 * image, a byte per value). A JPEG that is scaled to a
 * quarter of its size or less is decoded at half of it, or less. Any other file, and one that is
 * damaged, cut off, or has too many pixels is KILN_E_FORMAT; the message names the file. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_read(const char *path, const KilnPngForm *form,
                                                   KilnImage *image, KilnError *err);
/* The same of the `size` bytes of a file; `name` stands for it in messages. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_read_bytes(const void *data, size_t size,
                                                         const char *name, const KilnPngForm *form,
                                                         KilnImage *image, KilnError *err);
/* The same of a value for preprocessing: the path or bytes of an image file, or an array
 * [height, width, channels] or [height, width], u8 of 0 to 255 or f32 of 0 to 1, with 1 to 4
 * channels as a PNG has (grey, grey and alpha, RGB, RGBA). KILN_E_SHAPE for any other array,
 * KILN_E_NUMERIC for one with NaN or infinity. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_read_raw(const KilnRawValue *value,
                                                       const KilnPngForm *form, KilnImage *image,
                                                       KilnError *err);
/* The field "image" that kiln_image_read_raw reads, for KilnDataModuleOps.raw_fields. */
KILN_API_TABLE const KilnRawField kiln_raw_image;
/* Height, width, channels (1 or 3, what the file itself has) of the upright image without decoding
 * the pixels; `max_pixels` as in KilnPngForm. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_size(const char *path, int64_t max_pixels,
                                                   int64_t ret[3], KilnError *err);
/* The same of the `size` bytes of a file. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_size_bytes(const void *data, size_t size,
                                                         const char *name, int64_t max_pixels,
                                                         int64_t ret[3], KilnError *err);
/* kiln_image_read, kiln_image_read_bytes and kiln_image_size, as plugins call them that were
 * compiled when only PNG was read. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_read_png(const char *path, const KilnPngForm *form,
                                                       KilnImage *image, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_image_read_png_bytes(const void *data, size_t size,
                                                             const char *name,
                                                             const KilnPngForm *form,
                                                             KilnImage *image, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_image_png_size(const char *path, int64_t max_pixels,
                                                       int64_t ret[3], KilnError *err);
/* Write 8-bit PNG from `image` (1 or 3 channels, values clamped to 0..1). */
KILN_API KILN_NODISCARD KilnStatus kiln_image_write_png(const char *path, const KilnImage *image,
                                                        KilnError *err);
/* A PNG file in memory, from 8-bit pixels in rows, height × width × channels (1 or 3). Owned by
 * the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_png_encode(const uint8_t *pixels, int64_t height,
                                                   int64_t width, int64_t channels, uint8_t **ret,
                                                   size_t *ret_size, KilnError *err);
/* Write such a file. */
KILN_API KILN_NODISCARD KilnStatus kiln_png_write(const char *path, const uint8_t *pixels,
                                                  int64_t height, int64_t width, int64_t channels,
                                                  KilnError *err);
/* Bilinear with antialiasing when shrinking (as Pillow and torchvision do).
 * `from` and `to` are different images. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_scale(const KilnImage *from, int64_t height,
                                                    int64_t width, KilnImage *to, KilnError *err);

typedef enum KilnImageFilter {
    KILN_FILTER_BILINEAR, /* a triangle */
    KILN_FILTER_BICUBIC,  /* Keys' cubic with a = -0.5; it can leave 0..1 a little */
    KILN_FILTER_NEAREST   /* one pixel, never a mean of several */
} KilnImageFilter;
/* The choices of an option for it: bilinear, bicubic, nearest. */
KILN_API_TABLE const KilnChoice kiln_image_filters[4];

/* A part of an image, in its pixels, and the size that it is scaled to. */
typedef struct KilnImageWindow {
    int64_t top, left, height, width; /* within the image */
    int64_t to_height, to_width;
    KilnImageFilter filter; /* wider when shrinking (antialias), except KILN_FILTER_NEAREST */
} KilnImageWindow;

/* Scale a part of `from`, as torchvision's resized_crop with antialias does. `from` and `to` are
 * different images. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_scale_part(const KilnImage *from,
                                                         const KilnImageWindow *window,
                                                         KilnImage *to, KilnError *err);

/* ---- Sets of image files -------------------------------------------------- */

/* Image files with their classes. Everything belongs to the set. */
typedef struct KilnImageSet {
    int64_t count;
    const char *const *paths; /* in byte order of class, then name */
    const int32_t *labels;    /* index of the class of each file */
    int64_t n_classes;
    const char *const *classes;   /* in byte order */
    const KilnOmission *left_out; /* other files that were found */
    size_t n_left_out;
    void *memory;
} KilnImageSet;

/* The files FOLDER/<class>/<name> that end with .png, .jpg, .jpeg or .webp, in small or
 * capital letters. Names that start with a dot and other files are passed over (the latter are in
 * left_out, by their endings, as are files beside the classes); a folder inside a class, a class
 * without images and a folder without classes are KILN_E_FORMAT. With `known` the
 * classes are that set's (copied), some may be missing here, and one that it
 * lacks is KILN_E_FORMAT. `poll` may be NULL. Release with kiln_image_set_release. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_set_scan(const char *folder,
                                                       const KilnImageSet *known,
                                                       const KilnPoll *poll, KilnImageSet *ret,
                                                       KilnError *err);
/* The same of a folder in the archive `path`. The set's paths begin with that of the archive:
 * kiln_tar_find(tar, paths[i] + strlen(path) + 1) is the file. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_set_scan_tar(const KilnTar *tar, const char *path,
                                                           const char *folder,
                                                           const KilnImageSet *known,
                                                           const KilnPoll *poll, KilnImageSet *ret,
                                                           KilnError *err);
/* Accepts a zeroed set. */
KILN_API void kiln_image_set_release(KilnImageSet *set);
/* For KilnDataModuleOps.left_out. Accepts a zeroed set. */
KILN_API void kiln_image_set_left_out(const KilnImageSet *set,
                                      void (*add)(void *ctx, const KilnOmission *omission),
                                      void *ctx);

/* What a transform does to a mask, whose pixels are classes (kiln/images/image_masks.h). */
typedef enum KilnTransformKind {
    KILN_TRANSFORM_OTHER,  /* computes pixels from several: masks can't take it */
    KILN_TRANSFORM_VALUES, /* changes values, moves nothing: masks stay as they are */
    KILN_TRANSFORM_MOVES,  /* moves whole pixels, 0 from outside: masks get the same with the same
                              random numbers */
} KilnTransformKind;

/* Where pixels come from: the point (x, y) of the result, whose pixel in column i has its center at
 * x = i + 0.5, is at (a/c, b/c) of the source, where (a, b, c) is the matrix times (x, y, 1). */
typedef struct KilnWarp {
    double matrix[3][3];
} KilnWarp;

/* A transform changes one image. `training` is false for val, test and predict:
 * random transforms then do their deterministic counterpart or nothing. */
struct KilnTransformOps {
    /* In place or by swapping with `scratch` (a spare image that the caller keeps). NULL: `window`
     * says everything. */
    KilnStatus (*apply)(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err);
    /* Height, width, channels after apply, from those before; -1: not known
     * before decoding (differs per file). NULL: unchanged. */
    KilnStatus (*shape)(KilnInstance *self, int64_t size[3], KilnError *err);
    /* In place of apply, of a transform that takes a part of an image and scales it: which part of
     * an image of that height, width and channels. Where it is the first transform only that part
     * of a file is decoded. */
    KilnStatus (*window)(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                         KilnImageWindow *ret, KilnError *err);
    KilnTransformKind kind;
    /* Optional, both: whether it needs the statistics of the training images, and taking them: mean
     * and standard deviation of each channel, of images as they come to it. Called before apply. */
    bool (*needs_statistics)(KilnInstance *self);
    KilnStatus (*set_statistics)(KilnInstance *self, const double *mean, const double *std,
                                 int64_t channels, KilnError *err);
    /* Optional, of a transform with `apply` that moves pixels: where those of the result come from,
     * of an image of that height, width and channels; *ret moves nothing before. It draws the same
     * random numbers as apply. Called before it, so an image that apply refuses may come. With it
     * boxes of objects can follow their image (kiln/images/box_sets.h). */
    KilnStatus (*warp)(KilnInstance *self, const int64_t size[3], KilnRng *rng, bool training,
                       KilnWarp *ret, KilnError *err);
};

/* ---- Image files as samples ----------------------------------------------- */

/* What becomes of a file. What it points to is borrowed while a reader has it. */
typedef struct KilnImageForm {
    int64_t channels;      /* 1: grey, 3: colour */
    int64_t height, width; /* images are scaled to before the transforms; -1: as they are */
    KilnInstance *const *transforms; /* applied in this order */
    size_t n_transforms;
    int64_t max_pixels; /* of a file; 0: KILN_IMAGE_MAX_PIXELS */
    bool skips;         /* a file that can't be read is KILN_E_SKIP */
} KilnImageForm;

/* Reads samples in any number of threads; keeps the room that they work in. */
typedef struct KilnImageReader KilnImageReader;

KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_new(const KilnImageForm *form,
                                                         KilnImageReader **ret, KilnError *err);
KILN_API void kiln_image_reader_free(KilnImageReader *reader); /* NULL is fine */
/* Height, width, channels of the files of `sets` before the transforms (-1: they differ) and of
 * samples. The first set is not empty. Only where the form leaves the size of samples open all
 * files are looked at; when they differ then, or can't be transformed, it is KILN_E_SHAPE. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_shape(const KilnImageReader *reader,
                                                           const KilnImageSet *const sets[],
                                                           size_t n, const KilnPoll *poll,
                                                           int64_t ret_decoded[3],
                                                           int64_t ret_shape[3], KilnError *err);

/* Images wherever they are: in files, in archives, in memory. */
typedef struct KilnImageSource {
    int64_t count;
    void *ctx;
    /* Image i as a path or bytes, borrowed until the next call. */
    void (*get)(void *ctx, int64_t i, KilnRawValue *ret);
} KilnImageSource;

/* Check the sizes of up to 5,000 images at equal distances, for KilnDataModuleOps.check: files that
 * can't be read, grey ones among colours, and those much smaller or of other proportions than most.
 * `what` names them: "train". Calls `add` for each check. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_source_check(
    const KilnImageSource *source, const char *what, const KilnPoll *poll,
    void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx, KilnError *err);

/* kiln_image_reader_shape of images in any place. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_shape_of(const KilnImageReader *reader,
                                                              const KilnImageSource *sources,
                                                              size_t n, const KilnPoll *poll,
                                                              int64_t ret_decoded[3],
                                                              int64_t ret_shape[3], KilnError *err);

/* Give the transforms that need them the statistics of the training images, as validation prepares
 * them: images order[0..n-1] of `source` (NULL: all n), or 10,000 of them at equal distances.
 * Before reading. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_fit(KilnImageReader *reader,
                                                         const KilnImageSource *source,
                                                         const int32_t *order, int64_t n,
                                                         const KilnPoll *poll, KilnError *err);
/* Write what was computed to image_statistics.txt in `dir`, if anything was
 * (KilnDataModuleOps.save_preprocessing). */
KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_save(const KilnImageReader *reader,
                                                          const char *dir, KilnError *err);
/* Read it there instead of computing it (KilnDataContext.fitted). KILN_E_FORMAT if the transforms
 * need other statistics. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_open(KilnImageReader *reader, const char *dir,
                                                          KilnError *err);

/* Bytes that a thread holds while it reads a sample of these files: of the largest of those looked
 * at, at most 1,024 spread over all. For KilnDataModuleOps.memory. */
KILN_API int64_t kiln_image_reader_memory(const KilnImageReader *reader,
                                          const KilnImageSet *const sets[], size_t n);
/* The same of images in any place. */
KILN_API int64_t kiln_image_reader_memory_of(const KilnImageReader *reader,
                                             const KilnImageSource *sources, size_t n);

/* The cache of a set of images, decoded and scaled but not transformed. */
typedef struct KilnImageCacheSpec {
    const char *folder; /* of the cache */
    const char *root;   /* of the data */
    KilnSplit split;
    const char *set; /* its name; "" of the first */
    int64_t count;
    int64_t size[3]; /* height, width, channels of each */
} KilnImageCacheSpec;
/* Open it, or make an empty one. Owned by the caller (kiln_cache_close). */
KILN_API KILN_NODISCARD KilnStatus kiln_image_cache_open(const KilnImageCacheSpec *spec,
                                                         KilnCache **ret, KilnError *err);

/* A file, and what is known of it. */
typedef struct KilnImageFile {
    const char *path;        /* of `raw`: a name for messages */
    const KilnRawValue *raw; /* an image for preprocessing, in place of the file. May be NULL */
    const int64_t *shape;    /* [3]: the sample must come out so (KILN_E_SHAPE) */
    KilnCache *cache;        /* of images before the transforms; NULL: none */
    const int64_t *decoded;  /* [3]: these images; unused without a cache */
    int64_t entry;           /* the file's in the cache */
    bool training;           /* for the transforms */
} KilnImageFile;

/* Write the sample of `file` to `to`, floats of its shape. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_reader_read(KilnImageReader *reader,
                                                          const KilnImageFile *file, KilnRng *rng,
                                                          float *to, KilnError *err);

#endif
