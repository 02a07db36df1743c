/* Grids of samples that a model draws while it trains: in the run folder and in loggers. */
#include "kiln/images/sample_pictures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kiln/image.h"

enum { COLOURS = 3, GREY = 128 };

const char *kiln_trainer_detections(const KilnTrainer *trainer, int64_t row)
{
    const char *name;

    for (size_t i = 0; (name = kiln_trainer_result_name(trainer, i)) != NULL; i++)
        if (strcmp(name, "detections") == 0)
            return kiln_trainer_result(trainer, i, row);
    return NULL;
}

bool kiln_sample_grid_is_due(const KilnTrainer *trainer, int64_t every_n_epochs)
{
    return kiln_trainer_batch(trainer) == 1 && kiln_trainer_dataloader(trainer) == 0 &&
           strcmp(kiln_trainer_phase(trainer), "validate") == 0 &&
           kiln_trainer_rank(trainer) == 0 && kiln_trainer_epoch(trainer) % every_n_epochs == 0;
}

KilnStatus kiln_sample_grid_init(KilnSampleGrid *grid, KilnError *err)
{
    KilnPicture *whole = &grid->whole;

    whole->height = grid->rows * (grid->height + 1) - 1;
    whole->width = whole->row = grid->columns * (grid->width + 1) - 1;
    const size_t bytes = (size_t)(whole->height * whole->width * COLOURS);
    whole->pixels = malloc(bytes);
    if (whole->pixels == NULL)
        return kiln_error_nomem(err, bytes);
    memset(whole->pixels, GREY, bytes);
    return KILN_OK;
}

KilnPicture kiln_sample_grid_panel(const KilnSampleGrid *grid, int64_t row, int64_t column)
{
    const int64_t y = row * (grid->height + 1), x = column * (grid->width + 1);

    return (KilnPicture) { .pixels = grid->whole.pixels + (y * grid->whole.row + x) * COLOURS,
                           .height = grid->height,
                           .width = grid->width,
                           .row = grid->whole.row };
}

/* A picture that can't be written does not fail the run. */
static void write_grid(const KilnSampleGrid *grid, KilnTrainer *trainer, const char *who,
                       const char *dir)
{
    const char *run = kiln_trainer_run_dir(trainer);
    char path[KILN_PICTURE_PATH];
    KilnError why = { 0 };

    if (dir == NULL || run[0] == '\0' ||
        strlen(run) + strlen(dir) + sizeof("//epoch=.png") + 20 > sizeof(path))
        return;
    snprintf(path, sizeof(path), "%s/%s", run, dir);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        (void)kiln_error_errno(&why, path);
    snprintf(path, sizeof(path), "%s/%s/epoch=%03lld.png", run, dir,
             (long long)kiln_trainer_epoch(trainer));
    if (why.status < 0 || kiln_png_write(path, grid->whole.pixels, grid->whole.height,
                                         grid->whole.width, COLOURS, &why) < 0)
        kiln_trainer_print(trainer, "warning: %s: %s", who, why.text);
}

KilnStatus kiln_sample_grid_show(const KilnSampleGrid *grid, KilnTrainer *trainer, const char *who,
                                 const char *dir, const char *name, KilnError *err)
{
    const KilnPixels pixels = { .height = grid->whole.height,
                                .width = grid->whole.width,
                                .channels = COLOURS,
                                .data = grid->whole.pixels };

    write_grid(grid, trainer, who, dir);
    return kiln_trainer_takes(trainer, KILN_LOG_IMAGES)
               ? kiln_trainer_log_image(trainer, name, &pixels, err)
               : KILN_OK;
}

void kiln_sample_grid_release(KilnSampleGrid *grid)
{
    free(grid->whole.pixels);
    grid->whole.pixels = NULL;
}
