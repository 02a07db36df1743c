/* A Python process that has one object, and calls of its methods: a socket for messages, and memory
 * that both map for arrays. The process ends with this one. */
#ifndef KILN_PYTHON_HOST_H
#define KILN_PYTHON_HOST_H

#include <jansson.h>

#include "kiln/tensor.h"

typedef struct KilnPythonHost KilnPythonHost;

/* What a host is for. All of it is borrowed as long as the host lives. */
typedef struct KilnPythonUse {
    const char *python; /* the program: a path, or a name on the PATH */
    const char *folder; /* where modules are searched first; NULL: nowhere */
    const char *name;   /* "python:mydata.Tweets", for messages */
    double timeout;     /* seconds that a call may take */
    /* Receives what the process prints, line by line, and tracebacks (`detail`), in the thread of
     * the call. NULL: it is dropped. */
    void (*print)(void *ctx, bool detail, const char *line);
    void *ctx;
} KilnPythonUse;

/* Start the process. KILN_E_MISSING: there is no Python. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_python_host_start(const KilnPythonUse *use, KilnPythonHost **ret,
                                                 KilnError *err);
/* End the process and wait for its end. Accepts NULL. */
void kiln_python_host_end(KilnPythonHost *host);

/* Several threads may call; what a call left in the shared memory is valid between these two. */
void kiln_python_host_lock(KilnPythonHost *host);
void kiln_python_host_unlock(KilnPythonHost *host);

/* Answers a question that the process asks during a call ("ask" is its name), with NULL when memory
 * is out. */
typedef json_t *KilnPythonAnswer(void *ctx, const char *ask, const json_t *question);

typedef struct KilnPythonCall {
    const char *what;         /* the method, for messages: "__getitem__" */
    json_t *request;          /* {"call": ...}; consumed. NULL: memory is out */
    const KilnPoll *poll;     /* asked while waiting; NULL: none */
    KilnPythonAnswer *answer; /* NULL: no questions are expected */
    void *ctx;
} KilnPythonCall;

/* Call the process, with the lock held, and wait for its reply, owned by the caller (json_decref).
 * An exception is an error with its type, message, file, line and function, KILN_E_FORMAT; a
 * process that ended or does not answer in time is KILN_E_PLUGIN, and so is every later call. */
KILN_NODISCARD KilnStatus kiln_python_call(KilnPythonHost *host, const KilnPythonCall *call,
                                           json_t **ret, KilnError *err);

/* ---- Arrays in the shared memory ---------------------------------------------------------- */

/* An array there. Text has no dtype and no axes. */
typedef struct KilnPythonArray {
    bool text;
    KilnDType dtype;
    KilnShape shape;
    const void *data; /* borrowed until the next call */
    size_t bytes;
} KilnPythonArray;

/* The array at a place that a reply names. KILN_E_SHAPE: it has too many axes or elements. */
KILN_NODISCARD KilnStatus kiln_python_array(KilnPythonHost *host, const json_t *place,
                                            KilnPythonArray *ret, KilnError *err);
/* Copy an array to the shared memory, after those put since the last call, and describe its place
 * for a request; NULL: memory is out. With the lock held. */
json_t *kiln_python_put(KilnPythonHost *host, KilnDType dtype, const KilnShape *shape,
                        const void *data);

#endif
