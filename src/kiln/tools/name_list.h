/* Names with numbers, such as the classes and tags of a data set: collected from the training
 * split, saved with a checkpoint, and found again. */
#ifndef KILN_NAME_LIST_H
#define KILN_NAME_LIST_H

#include "kiln/tokenizer.h"

/* A zeroed one is ready. */
typedef struct KilnNameList {
    char **names; /* the number of a name is its place */
    size_t n, capacity;
    bool sorted; /* kept in the order of their bytes; set it before the first name */
} KilnNameList;

/* The number of a name; -1: it is not in the list. */
KILN_API int64_t kiln_name_list_find(const KilnNameList *list, KilnString name);
/* Add a name, unless it is there: at the end, or where it belongs in a sorted list. */
KILN_API KILN_NODISCARD KilnStatus kiln_name_list_add(KilnNameList *list, KilnString name,
                                                      KilnError *err);
/* Add the names of the file FOLDER/FILE, one per line, at the end. */
KILN_API KILN_NODISCARD KilnStatus kiln_name_list_read(KilnNameList *list, const char *folder,
                                                       const char *file, KilnError *err);
/* Write such a file. No name may have a line end. */
KILN_API KILN_NODISCARD KilnStatus kiln_name_list_write(const KilnNameList *list,
                                                        const char *folder, const char *file,
                                                        KilnError *err);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_name_list_release(KilnNameList *list);

#endif
