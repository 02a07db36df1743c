/* Components that are classes of Python: a registry finds "python:MODULE.CLASS" by running Python,
 * which describes the class. */
#ifndef KILN_PYTHON_PYTHON_SOURCE_H
#define KILN_PYTHON_PYTHON_SOURCE_H

#include "kiln/embed/registry.h"

/* How Python is run, and what may be. All of it is borrowed as long as the registry lives. */
typedef struct KilnPythonRequest {
    const char *python; /* a path, or a name on the PATH */
    const char *folder; /* absolute; where modules are searched first. NULL: nowhere */
    const char *why;    /* why there is no folder, for messages; NULL: there is one */
    /* Whether a config file or argument is the user's own; classes that others name run only if
     * this user has run exactly that file before. NULL: all are the user's own. */
    bool (*is_own)(const char *source);
    bool foreign;                 /* no config is the user's own: that of a run folder is used */
    const char *const *arguments; /* of the user, NULL-terminated: what they name is the user's own,
                                   * too; NULL: none */
} KilnPythonRequest;

/* Let `registry` find classes of Python. */
KILN_NODISCARD KilnStatus kiln_python_open(KilnRegistry *registry, const KilnPythonRequest *request,
                                           KilnError *err);

#endif
