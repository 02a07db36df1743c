/* Collects what a search for files leaves out, by reason. */
#ifndef KILN_DATA_LEFT_OUT_H
#define KILN_DATA_LEFT_OUT_H

#include "base/arena.h"
#include "kiln/data.h"

/* A zeroed list is ready. Its memory is the arena's. */
typedef struct KilnLeftOut {
    KilnArena *arena;
    KilnOmission *list;
    size_t n;
} KilnLeftOut;

/* Count one more of `what` ("files"), found as FOLDER/NAME, or NAME if folder is NULL. False:
 * memory ran out. */
bool kiln_left_out_add(KilnLeftOut *left_out, const char *what, const char *reason,
                       const char *folder, const char *name);
/* The same of a file, by its ending: ".jpg files". */
bool kiln_left_out_add_file(KilnLeftOut *left_out, const char *reason, const char *folder,
                            const char *name);

#endif
