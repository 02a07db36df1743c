/* The process's standard streams: what is lost on standard output is an error of every command. */
#ifndef KILN_CLI_SCREEN_STREAMS_H
#define KILN_CLI_SCREEN_STREAMS_H

#include "kiln/base.h"

/* Call first: occupies the numbers of standard streams that the caller closed, so that no file of a
 * run gets one of them and with it what is printed. */
void kiln_streams_open(void);
/* Fill err with "cannot write standard output: <strerror(errno)>". */
KilnStatus kiln_streams_error(KilnError *err);
/* Call last: writes out and closes standard output, and returns the exit status of the process:
 * `status`, or 1 after a message when something could not be written. A reader that went away
 * (`| head`) is no error to report: 128 + SIGPIPE. */
int kiln_streams_close(const char *command, int status);

#endif
