/* What `kiln new` finds out about a user's data, and the config that it makes of that. */
#ifndef KILN_CLI_NEW_NEW_CONFIG_H
#define KILN_CLI_NEW_NEW_CONFIG_H

#include "base/arena.h"
#include "kiln/data.h"
#include "kiln/files/text_records.h"
#include "kiln/tools/text.h"

/* ---- The config ------------------------------------------------------------------------------ */

/* The parts of a config below its defaults list. */
typedef enum KilnNewPart {
    KILN_NEW_ROOT,
    KILN_NEW_DATA,
    KILN_NEW_MODEL,
    KILN_NEW_OPTIMIZER,
    KILN_NEW_TASK,
    KILN_NEW_TRAINER,
    KILN_NEW_PARTS
} KilnNewPart;

/* Something that the command says: what it assumed, or what looks wrong. */
typedef struct KilnNewLine {
    const char *name, *text;
} KilnNewLine;

typedef struct KilnNewConfig {
    /* The question. */
    const KilnPoll *poll;
    const char *target; /* --target; NULL: look for it */
    const char *table;  /* --table, of a database; NULL: its only one */
    /* The answer. Texts are static or in the arena. */
    const char *task, *datamodule, *model, *optimizer; /* options of groups; NULL: the default */
    const char *callbacks;                             /* a list of options; NULL: the default */
    KilnText parts[KILN_NEW_PARTS];
    KilnNewLine said[24], odd[24];
    size_t n_said, n_odd;
    KilnArena arena;
} KilnNewConfig;

void kiln_new_release(KilnNewConfig *config);

/* Add a value as YAML text, with a nested one as a flow mapping. */
void kiln_new_set(KilnNewConfig *config, KilnNewPart part, const char *key, const char *format, ...)
    KILN_PRINTF(4, 5);
/* Add a text of the user's, with quotes where YAML or an interpolation needs them. */
void kiln_new_set_text(KilnNewConfig *config, KilnNewPart part, const char *key, const char *value);
/* Append such a text. */
void kiln_new_put_text(KilnText *text, const char *value);
/* Say what was assumed about something ("target"), once for each name. */
void kiln_new_say(KilnNewConfig *config, const char *name, const char *format, ...)
    KILN_PRINTF(3, 4);
/* Say what looks wrong in the data. */
void kiln_new_say_odd(KilnNewConfig *config, const char *format, ...) KILN_PRINTF(2, 3);
/* Epochs of about `steps` steps in all, between `least` and `most`. */
int64_t kiln_new_epochs(int64_t samples, int64_t batch, int64_t steps, int64_t least, int64_t most);
/* Set batch_size and trainer.max_epochs from that. */
void kiln_new_set_length(KilnNewConfig *config, int64_t samples, int64_t batch, int64_t steps,
                         int64_t most_epochs);
/* Write the config: an option of a group (`in_group`), or a primary config with all groups. */
KILN_NODISCARD KilnStatus kiln_new_text(const KilnNewConfig *config, bool in_group,
                                        const char *comment, char **ret, KilnError *err);

/* ---- The data -------------------------------------------------------------------------------- */

/* Of each split. */
enum { KILN_NEW_FILES = 1000 };

/* Files of the user's by split. */
typedef struct KilnNewFiles {
    const char *list[KILN_SPLIT_COUNT][KILN_NEW_FILES];
    size_t n[KILN_SPLIT_COUNT];
} KilnNewFiles;

/* Find out what the paths are: files, or one folder or archive. All messages say what to do. */
KILN_NODISCARD KilnStatus kiln_new_look(KilnNewConfig *config, const char *const *paths, size_t n,
                                        KilnError *err);

/* Each of these functions knows one kind of data, fills the config, and is called once. */

/* Class folders of images in `root`, or below its folders of splits; of an archive, too. */
KILN_NODISCARD KilnStatus kiln_new_image_folder(KilnNewConfig *config, const char *root,
                                                bool has_splits, KilnError *err);
/* Images and masks: patterns of datamodule mask_folder below root; of the training files. */
KILN_NODISCARD KilnStatus kiln_new_masks(KilnNewConfig *config, const char *root,
                                         const char *images, const char *masks, KilnError *err);
/* The sizes of some of n images that `path` gives: sets channels, size and model. */
KILN_NODISCARD KilnStatus kiln_new_image_form(KilnNewConfig *config,
                                              const char *(*path)(void *ctx, int64_t i), void *ctx,
                                              int64_t n, KilnError *err);
/* The sizes of some of n images: sets channels, and a size with sides that are multiples of
 * `multiple` and at most `largest`; of images of several sizes `letterbox`, too. */
KILN_NODISCARD KilnStatus kiln_new_scale_images(KilnNewConfig *config, const char *const *paths,
                                                int64_t n, int64_t multiple, int64_t largest,
                                                bool *ret_damaged, KilnError *err);
/* Files of one kind, sorted by split: rows, texts, tags, numbers. */
KILN_NODISCARD KilnStatus kiln_new_files(KilnNewConfig *config, const KilnNewFiles *files,
                                         KilnError *err);
/* Whether the lines of a text begin with names of images: a list of them. */
bool kiln_new_lists_images(const char *path);
/* Rows of named columns: a table, texts with labels, images, words with tags. `format`
 * AUTO: by the ending. */
KILN_NODISCARD KilnStatus kiln_new_rows(KilnNewConfig *config, const KilnNewFiles *files,
                                        KilnRecordFormat format, KilnError *err);
/* A SQLite database. */
KILN_NODISCARD KilnStatus kiln_new_database(KilnNewConfig *config, const char *path,
                                            KilnError *err);
/* Texts with a class: format AUTO, LABELED, LABEL_FIRST or FOLDERS. */
KILN_NODISCARD KilnStatus kiln_new_labeled(KilnNewConfig *config, const KilnNewFiles *files,
                                           KilnRecordFormat format, KilnError *err);
/* Words with tags: CoNLL columns, or parallel files. */
KILN_NODISCARD KilnStatus kiln_new_tagged(KilnNewConfig *config, const KilnNewFiles *files,
                                          KilnRecordFormat format, KilnError *err);
/* Pairs of files whose lines belong together: translation. */
KILN_NODISCARD KilnStatus kiln_new_parallel(KilnNewConfig *config, const KilnNewFiles *files,
                                            KilnError *err);
/* Plain text, for a language model. */
KILN_NODISCARD KilnStatus kiln_new_plain_text(KilnNewConfig *config, const KilnNewFiles *files,
                                              KilnError *err);

/* The split that a file's name says: "train", "dev", "valid", ...; -1: none. */
int kiln_new_split_of(const char *path);
/* datamodule.files, of the splits that have any. */
void kiln_new_set_files(KilnNewConfig *config, const KilnNewFiles *files);
/* Say which files train, validate and test, and the held-out parts where there are none. */
void kiln_new_say_splits(KilnNewConfig *config, const KilnNewFiles *files, double val_fraction,
                         double test_fraction);
/* What is said about classes: few samples of one, many more of another. */
void kiln_new_say_classes(KilnNewConfig *config, const char *what, const int64_t *counts,
                          const char *const *names, size_t n);
/* A name without folders and endings, for a file of the config. In the arena. */
const char *kiln_new_stem(KilnNewConfig *config, const char *path);

#endif
