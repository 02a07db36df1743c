/* Reads one config file: its header, its defaults list, its content. */
#ifndef KILN_CONFIG_DEFAULTS_CONFIG_FILE_H
#define KILN_CONFIG_DEFAULTS_CONFIG_FILE_H

#include "config/defaults/search_path.h"

/* Read the file at file->source into `file`. */
KILN_NODISCARD KilnStatus kiln_config_file_load(KilnSearch *search, KilnConfigFile *file,
                                                KilnError *err);
/* The same from text; `component`: the text has options of a component and is not a file. */
KILN_NODISCARD KilnStatus kiln_config_file_parse(KilnSearch *search, KilnConfigFile *file,
                                                 const char *text, size_t size, bool component,
                                                 KilnError *err);

#endif
