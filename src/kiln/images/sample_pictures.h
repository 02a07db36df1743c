/* Pictures of samples and of what a task predicts for them, for callbacks: images as 8-bit RGB,
 * grids of the first validation samples in the run folder and in loggers, and a file for each
 * prediction. */
#ifndef KILN_IMAGES_SAMPLE_PICTURES_H
#define KILN_IMAGES_SAMPLE_PICTURES_H

#include "kiln/plot.h"
#include "kiln/trainer.h"

/* ---- Drawing --------------------------------------------------------------------------------- */

/* Draw an image, [height, width, 1 or 3 channels], over a picture that is larger by a whole number,
 * or as large. range[0] is black and range[1] white; NULL: the smallest and the largest value,
 * since normalized pixels have no range of their own. */
KILN_API void kiln_picture_image(const KilnPicture *to, const float *image, int64_t height,
                                 int64_t width, int64_t channels, const float range[2]);

/* The result "detections" of a row of the batch that just ran (kiln_trainer_result); NULL: the task
 * gives none. */
KILN_API const char *kiln_trainer_detections(const KilnTrainer *trainer, int64_t row);
/* Draw the boxes of such a result, with classes and scores of at
 * least `least`, the best on top. Its coordinates in the file, x and y, are at
 * (place[0] x + place[2], place[1] y + place[3]) of the picture. KILN_E_FORMAT if `json` is no such
 * result. */
KILN_API KILN_NODISCARD KilnStatus kiln_picture_detections(const KilnPicture *to, const char *json,
                                                           const KilnDataSpec *spec,
                                                           const double place[4], double least,
                                                           KilnError *err);

/* ---- While a model trains -------------------------------------------------------------------- */

/* Panels of one size in rows, with a grey line between them. */
typedef struct KilnSampleGrid {
    int64_t rows, columns;
    int64_t height, width; /* of a panel */
    KilnPicture whole;
} KilnSampleGrid;

/* For on_validation_batch_end: whether this is the batch that is drawn, the first one of the first
 * set, every so many epochs, in the process that writes. */
KILN_API bool kiln_sample_grid_is_due(const KilnTrainer *trainer, int64_t every_n_epochs);
/* Room for a grid, whose four numbers are set. KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_sample_grid_init(KilnSampleGrid *grid, KilnError *err);
KILN_API KilnPicture kiln_sample_grid_panel(const KilnSampleGrid *grid, int64_t row,
                                            int64_t column);
/* Write it to the run folder as DIR/epoch=NNN.png, unless `dir` is NULL, and pass it as `name` to
 * loggers that accept images. A file that can't be written is a warning that begins with `who`. */
KILN_API KILN_NODISCARD KilnStatus kiln_sample_grid_show(const KilnSampleGrid *grid,
                                                         KilnTrainer *trainer, const char *who,
                                                         const char *dir, const char *name,
                                                         KilnError *err);
/* Accepts a zeroed one. */
KILN_API void kiln_sample_grid_release(KilnSampleGrid *grid);

/* ---- Predictions ----------------------------------------------------------------------------- */

enum { KILN_PICTURE_PATH = 4096 };

/* The file for the picture of a sample of the set that is read: the name of its file without
 * folders and ending, or else its number, in the folder `dir`, with `ending` (".png"). Names that
 * several samples share get the number, too: "x-000012.png". KILN_E_RANGE if that is the sample's
 * own file, which would be overwritten, or too long; KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_sample_picture_path(KilnTrainer *trainer, int64_t sample,
                                                            const char *dir, const char *ending,
                                                            char ret[KILN_PICTURE_PATH],
                                                            KilnError *err);

#endif
