/* The conf/ folder that ships with the program, inside the program. */
#ifndef KILN_CONFIG_DEFAULTS_SHIPPED_H
#define KILN_CONFIG_DEFAULTS_SHIPPED_H

#include <stddef.h>

typedef struct KilnShippedFile {
    const char *path; /* below conf/: "model/resnet.yaml" */
    const char *text;
    size_t size;
} KilnShippedFile;

/* In byte order of path; made by tools/gen_files.sh. */
extern const KilnShippedFile kiln_shipped_conf[];
extern const size_t kiln_shipped_conf_count;

#endif
