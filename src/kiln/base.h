/* Status codes, errors with an origin, and macros for all public headers.
 *
 * Conventions of the whole interface:
 *  - A function that can fail for a reason outside the code returns KilnStatus
 *    (0 is success, failures are negative) and fills `err`, which may be NULL.
 *    On failure its outputs (`ret_x`) are left as they were.
 *  - Returned pointers are borrowed unless the comment says "owned by the
 *    caller". Pointer arguments are borrowed for the call unless it says otherwise.
 *  - Nothing prints, exits or keeps process-wide state.
 *  - Objects are not thread-safe unless the comment says so. */
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KILN_VERSION "0.1.0"

/* Marks the functions of the interface, and its tables. C++ programs include the same headers. */
#ifdef __cplusplus
#define KILN_API extern "C" __attribute__((visibility("default")))
#define KILN_API_TABLE KILN_API
#else
#define KILN_API __attribute__((visibility("default")))
#define KILN_API_TABLE extern KILN_API
#endif
#define KILN_NODISCARD __attribute__((warn_unused_result))
#define KILN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define KILN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One row per code: enumerator, value, name. */
#define KILN_STATUS_TABLE(X)                                                                       \
    X(OK, 0, "ok")                                                                                 \
    X(E_USAGE, -1, "wrong command line")                                                           \
    X(E_NOMEM, -2, "out of memory")                                                                \
    X(E_IO, -3, "input or output failed")                                                          \
    X(E_SYNTAX, -4, "syntax error")                                                                \
    X(E_KEY, -5, "unknown name")                                                                   \
    X(E_TYPE, -6, "wrong type")                                                                    \
    X(E_RANGE, -7, "out of range")                                                                 \
    X(E_MISSING, -8, "required value missing")                                                     \
    X(E_SHAPE, -9, "shapes do not fit")                                                            \
    X(E_FORMAT, -10, "damaged or foreign file")                                                    \
    X(E_NUMERIC, -11, "not a finite number")                                                       \
    X(E_INTERRUPTED, -12, "interrupted")                                                           \
    X(E_PLUGIN, -13, "plugin refused")                                                             \
    X(E_SKIP, -14, "sample left out")                                                              \
    X(E_INTERNAL, -15, "error in kiln itself")

typedef enum KilnStatus {
#define KILN_STATUS_ENUM(name, value, text) KILN_##name = (value),
    KILN_STATUS_TABLE(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} KilnStatus;

/* Short name of a status code, static text. */
KILN_API const char *kiln_status_name(KilnStatus status);

/* Where a value was written: a file with line and column (1-based), a command-line argument
 * ("argument 2 `lr=fast`"), or a component's default. line == 0: only the source is known, and for
 * an argument maybe the column. */
typedef struct KilnOrigin {
    const char *source; /* borrowed; lives as long as the tree or table it describes */
    int line;
    int column;
} KilnOrigin;

#define KILN_ERROR_TEXT 2048

/* An error on the caller's stack: code and the whole message, ready to print.
 * Allocates nothing, so it works when memory is out. */
typedef struct KilnError {
    KilnStatus status;
    char text[KILN_ERROR_TEXT];
    KilnOrigin origin; /* where the error is; source NULL: none. Borrowed like any origin */
} KilnError;

/* Fill err (when not NULL) with a formatted message and return `status`.
 * Say what, where, what was expected, and the next step. */
KILN_API KilnStatus kiln_error_set(KilnError *err, KilnStatus status, const char *format, ...)
    KILN_PRINTF(3, 4);
KILN_API KilnStatus kiln_error_vset(KilnError *err, KilnStatus status, const char *format,
                                    va_list args);
/* Prefix the message with "file:line:column: " (or the source alone), and store the origin unless a
 * more exact one is already stored. */
KILN_API KilnStatus kiln_error_at(KilnError *err, const KilnOrigin *origin);
/* Prefix the message with formatted text. Keeps and returns the status. */
KILN_API KilnStatus kiln_error_prefix(KilnError *err, const char *format, ...) KILN_PRINTF(2, 3);
/* Fill err with the message for a failed allocation of `bytes`. */
KILN_API KilnStatus kiln_error_nomem(KilnError *err, size_t bytes);
/* Fill err with "PATH: <strerror(errno)>", from the current errno. */
KILN_API KilnStatus kiln_error_errno(KilnError *err, const char *path);

/* How long work before a run or an epoch (scanning files, shuffling) reports progress and learns
 * that the user wants to stop. kiln provides it. */
typedef struct KilnPoll {
    bool (*poll)(void *ctx, const char *what, int64_t done, int64_t total);
    void *ctx;
} KilnPoll;

/* Report that `done` of `total` (0: unknown) of `what` ("reading image sizes") are done; kiln shows
 * it after two seconds. True: the user wants to stop; return as soon as possible, with
 * KILN_E_INTERRUPTED if a status is returned. Call it in the thread that received `poll`. Takes
 * about 50 ns; `poll` NULL: false. */
KILN_API bool kiln_poll(const KilnPoll *poll, const char *what, int64_t done, int64_t total);
/* The same as a status with its message: KILN_OK, or KILN_E_INTERRUPTED. */
KILN_API KILN_NODISCARD KilnStatus kiln_poll_check(const KilnPoll *poll, const char *what,
                                                   int64_t done, int64_t total, KilnError *err);

/* fopen for files of a run folder, which may come from somebody else: does not follow a symbolic
 * link (ELOOP) and opens only regular files (ENXIO). `mode` is r, w, a, r+, w+ or a+. The file is
 * closed on exec. */
KILN_API FILE *kiln_file_open(const char *path, const char *mode);

#endif
