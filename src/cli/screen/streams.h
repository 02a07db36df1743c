/* The process's standard streams. Losing output is an error of every command. */
#ifndef KILN_CLI_SCREEN_STREAMS_H
#define KILN_CLI_SCREEN_STREAMS_H

#include "kiln/base.h"

/* Call first: opens standard streams that the caller closed, so that no file of a run gets their
 * numbers and the output. */
void kiln_streams_open(void);
/* Fill err with "cannot write standard output: <strerror(errno)>". */
KilnStatus kiln_streams_error(KilnError *err);
/* Call last: flushes and closes standard output. Returns the exit status of the process: `status`,
 * or 1 after a message when a write failed. When the reader is gone (`| head`) it is 128 + SIGPIPE
 * without a message. */
int kiln_streams_close(const char *command, int status);

#endif
