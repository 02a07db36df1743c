/* The process of a Python host: its start, and its end. */
#ifndef KILN_PYTHON_PROCESS_H
#define KILN_PYTHON_PROCESS_H

#include <sys/types.h>

#include "kiln/base.h"

typedef struct KilnPythonProcess {
    pid_t pid;   /* 0: none */
    int channel; /* the socket; -1: none */
    int output;  /* what it writes to its standard outputs; -1: none */
} KilnPythonProcess;

/* Start `python` with the bootstrap of python/kiln_host/boot.py. It ends when this process does,
 * and gets no signals of the terminal. `name` begins messages. */
KILN_NODISCARD KilnStatus kiln_python_process_start(const char *python, const char *name,
                                                    int memory_fd, KilnPythonProcess *ret,
                                                    KilnError *err);
/* Kill it, with what it started. */
void kiln_python_process_end(KilnPythonProcess *process);
/* Wait for a process that ends by itself, a second at most, and write how: "exit status 3", "killed
 * by SIGSEGV". */
void kiln_python_process_wait(KilnPythonProcess *process, char *how, size_t size);
/* Close its files. */
void kiln_python_process_close(KilnPythonProcess *process);

#endif
