/* The Python code of hosts (python/kiln_host), which the program carries. */
#ifndef KILN_PYTHON_MODULES_H
#define KILN_PYTHON_MODULES_H

#include <jansson.h>

/* The text of boot.py, which receives the rest; static. */
const char *kiln_python_boot(void);
/* The message that it waits for: {"folder": ..., "modules": [[name, text], ...]}, each module after
 * those that it imports. `folder` may be NULL. NULL: memory is out. */
json_t *kiln_python_modules(const char *folder);

#endif
