/* OpenMP threads of commands that compute. */
#ifndef KILN_CLI_THREADS_H
#define KILN_CLI_THREADS_H

/* Shorten how long idle OpenMP threads spin, unless the user has set how they wait. The library
 * reads the setting before main, so this executes the program again, or returns when it is set. */
void kiln_threads_settle(char **argv);

#endif
