/* Runs other programs by their command line, for launchers: argument lists, never a shell. */
#ifndef KILN_PROGRAM_H
#define KILN_PROGRAM_H

#include "kiln/tools/text.h"

/* A growing argument list. A zeroed one is ready; `failed` is set when memory runs out. */
typedef struct KilnArgv {
    char **items; /* NULL-terminated when not NULL */
    size_t count, capacity;
    bool failed;
} KilnArgv;

/* Append a word, as printf does. */
KILN_API void kiln_argv_add(KilnArgv *words, const char *format, ...) KILN_PRINTF(2, 3);
/* Append the words as they are typed in a shell. */
KILN_API void kiln_argv_write(const KilnArgv *words, KilnText *text);
/* Free the memory; `words` is then zeroed. */
KILN_API void kiln_argv_release(KilnArgv *words);

/* What a program wrote and returned. */
typedef struct KilnProgramEnd {
    int status; /* exit status; 128 + the number of the signal that killed it */
    KilnText output, errors;
} KilnProgramEnd;

/* Run a program, which is searched for on the PATH, with an empty standard input, and wait for its
 * end, at most `seconds`. It gets no signals of the terminal, and ends with this process.
 * KILN_E_IO: it is not there, or does not end; an exit status is no error. Release *ret in any
 * case. */
KILN_API KILN_NODISCARD KilnStatus kiln_program_run(const KilnArgv *words, double seconds,
                                                    KilnProgramEnd *ret, KilnError *err);
KILN_API void kiln_program_release(KilnProgramEnd *end);
/* Is there a program of that name on the PATH? */
KILN_API bool kiln_program_exists(const char *name);

#endif
