/* Jobs of a sweep on other machines: the command that runs one. Users never type it, so it is in no
 * help. */
#ifndef KILN_CLI_SWEEP_JOB_COMMAND_H
#define KILN_CLI_SWEEP_JOB_COMMAND_H

#define KILN_REMOTE_JOB_FLAG "--sweep-job"

typedef struct KilnRemoteCommand {
    char program[4096];
    const char *argv[4];
} KilnRemoteCommand;

/* The command as KilnSweepRequest.command has it, in `ret`; NULL: this program has no path. */
const char *const *kiln_remote_command_line(KilnRemoteCommand *ret);
/* Run job `number` of the sweep in the folder `dir`, both as the command line has them. Returns the
 * exit status of the process. */
int kiln_remote_job(const char *dir, const char *number);

#endif
