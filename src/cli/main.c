/* The program: `kiln COMMAND ...`, or `train ...` by the program's own name. Finds the command in
 * its table and runs it; cli/commands/ has one file for each. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/crash.h"
#include "cli/help/command_help.h"
#include "cli/screen/screen.h"
#include "cli/sweep/job_command.h"

static const KilnCommand commands[] = {
    { "train", kiln_command_train, true, "[resume=RUN] [OVERRIDE...]",
      "compose a config and train it" },
    { "new", kiln_command_new, false, "FILE...",
      "look at your data and write a config that trains on them" },
    { "check-data", kiln_command_check_data, false, "[OVERRIDE...]",
      "look for mistakes in the data of a config" },
    { "eval", kiln_command_eval, true, "RUN [split=test|val|train] [plots=DIR] [OVERRIDE...]",
      "test or validate a checkpoint" },
    { "predict", kiln_command_predict, true,
      "RUN INPUT [split=test|val|train] [output=FILE] [OVERRIDE...]",
      "a line of JSON for each sample; of -: for each line of standard input" },
    { "explain-prediction", kiln_command_explain_prediction, true, "RUN INPUT [OVERRIDE...]",
      "which pixels, columns or tokens a prediction rests on" },
    { "generate", kiln_command_generate, true,
      "RUN [prompt=TEXT] [input=FILE] [max_tokens=N] [temperature=T] [top_k=N] [top_p=P] "
      "[repetition_penalty=X] [stop=TEXT] [seed=N] [OVERRIDE...]",
      "text from a language model" },
    { "graph", kiln_command_graph, true, "[OVERRIDE...]",
      "the planned step: operations, time, memory" },
    { "ckpt", kiln_command_ckpt, false,
      "ls|show|verify|diff|average|merge-lora [RUN...] [last=N] [output=PATH]",
      "list, show, check, compare, average and merge checkpoints" },
    { "verify-resume", kiln_command_verify_resume, false, "[OVERRIDE...]",
      "kill and resume a run: does it end with the same bytes?" },
    { "sweep", kiln_command_sweep, false, "report|add|stop|simulate DIR|last [JOB] [OVERRIDE...]",
      "what a sweep has shown; add a job, or stop one; simulate another sweep" },
    { "tune", kiln_command_tune, true, "[lr] [batch_size] [OVERRIDE...]",
      "find a learning rate and a batch size" },
    { "replay", kiln_command_replay, true, "RUN|FILE [OVERRIDE...]",
      "train the last batches of a flight record again" },
    { "tokenizer", kiln_command_tokenizer, false,
      "train|encode|decode|show FILE [files=FILE] [column=NAME] [output=FILE] [OVERRIDE...]",
      "train a tokenizer, or use a tokenizer.json" },
    { "plugin", kiln_command_plugin, true,
      "new|check KIND NEW_NAME|FILE.so|KIND/NAME [KIND.OPTION=VALUE] [OVERRIDE...]",
      "begin a component of your own, or check it" },
    { "list", kiln_command_list, false, "", "all components" },
    { "show", kiln_command_show, false, "NAME", "a component, group, section or config file" },
    { "schema", kiln_command_schema, false, "[GROUP]",
      "a JSON Schema of config files, for editors" },
    { "init", kiln_command_init, false, "DIR", "write a starting project with a commented conf/" },
    { "import-hydra", kiln_command_import_hydra, false, "DIR",
      "turn a config tree of Hydra and Lightning into one of kiln's" },
    { "completion", kiln_command_completion, false, "bash|zsh|fish",
      "print a completion script for a shell" },
    { "explain", kiln_command_explain, false, "RUN [KEY...]",
      "where the values of a past run came from" },
    { "top", kiln_command_top, false, "", "the live runs on this machine" },
    { "doctor", kiln_command_doctor, false, "",
      "this machine: processor, kernels, threads, libraries" },
    { "version", kiln_command_version, false, "",
      "version of the program and of its plugin interface" },
};

const KilnCommand *kiln_command_at(size_t i)
{
    return i < KILN_COUNT(commands) ? &commands[i] : NULL;
}

const KilnCommand *kiln_command_find(const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static void write_usage(KilnPage *page)
{
    enum { SUMMARY = 22 /* the column */ };

    kiln_page_words(page, 7, "usage: kiln COMMAND [FLAG...] [KEY=VALUE...]");
    kiln_page_heading(page, "commands:");
    for (size_t i = 0; i < KILN_COUNT(commands); i++)
        kiln_page_pair(page, SUMMARY, commands[i].name, "%s", commands[i].summary);
    kiln_text_char(&page->text, '\n');
    kiln_page_words(page, 0,
                    "`kiln COMMAND --help` explains each; `train ...` is `kiln train ...`.");
    kiln_page_end(page);
}

/* With what was wrong. */
static void complain_usage(void)
{
    KilnPage page = { .width = kiln_screen_page().width };

    write_usage(&page);
    fputs(page.text.data != NULL ? page.text.data : "usage: kiln COMMAND\n", stderr);
    kiln_text_release(&page.text);
}

static int unknown_command(const char *name)
{
    const char *names[KILN_COUNT(commands)];

    for (size_t i = 0; i < KILN_COUNT(commands); i++)
        names[i] = commands[i].name;
    const char *nearest = kiln_nearest(name, names, KILN_COUNT(names));
    fprintf(stderr, "kiln: unknown command %s", name);
    if (nearest != NULL)
        fprintf(stderr, ": did you mean %s?", nearest);
    fputs("\n\n", stderr);
    complain_usage();
    return 2;
}

/* Shorten how long idle OpenMP threads spin, for which the program restarts itself. */
static void limit_spinning(char **argv)
{
    /* Enough for the pauses between the kernels of a step. GNU's default is about 10 ms; on a
     * shared machine every kernel would wait for a core that a spinning thread holds. */
    static const char spin_count[] = "3000";

    (void)prctl(PR_SET_NAME, program_invocation_short_name); /* exec names the process "exe" */
    if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL ||
        setenv("GOMP_SPINCOUNT", spin_count, 1) != 0)
        return;
    execv("/proc/self/exe", argv); /* if it fails, training is only slower */
}

/* Run a command; its arguments begin at argv + skip. */
static int run_command(const KilnCommand *command, int argc, char **argv, int skip)
{
    KilnError err = { 0 };
    KilnArgs args;
    KilnStatus parsed = kiln_args_parse(command->name, argc - skip, argv + skip, &args, NULL, &err);

    if (parsed < 0)
        return kiln_screen_result(command->name, parsed, &err);
    kiln_crash_report(command->name);
    bool jobs_planned = args.plan && args.multirun;
    if (command->computes && !args.help && !args.version && !jobs_planned && args.cfg == NULL &&
        args.info == NULL && args.explain[0] == NULL)
        limit_spinning(argv);
    int status;
    if (args.version) {
        status = kiln_command_version(&args);
    } else if (args.help && command->run != kiln_command_train) {
        KilnPage page = kiln_screen_page();

        kiln_command_help(&page, command);
        status = kiln_screen_print(&page);
    } else {
        status = command->run(&args);
    }
    kiln_args_release(&args);
    return kiln_screen_close(command->name, status);
}

/* A job of a sweep, as its launcher calls it: train --sweep-job DIR N. */
static int run_remote_job(char **argv, char **words)
{
    kiln_crash_report("train");
    limit_spinning(argv);
    return kiln_screen_close("train", kiln_remote_job(words[1], words[2]));
}

static bool is_remote_job(const KilnCommand *command, int argc, char **words)
{
    return command->run == kiln_command_train && argc == 3 &&
           strcmp(words[0], KILN_REMOTE_JOB_FLAG) == 0;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *self = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "kiln";
    const KilnCommand *command = kiln_command_find(self);

    kiln_screen_open();
    if (command != NULL && is_remote_job(command, argc - 1, argv + 1))
        return run_remote_job(argv, argv + 1);
    if (command != NULL)
        return run_command(command, argc, argv, 1);
    if (argc < 2) {
        complain_usage();
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        KilnPage page = kiln_screen_page();

        write_usage(&page);
        return kiln_screen_close("kiln", kiln_screen_print(&page));
    }
    if (strcmp(argv[1], "complete") == 0)
        return kiln_command_complete(argc - 2, argv + 2);
    command = kiln_command_find(strcmp(argv[1], "--version") == 0 ? "version" : argv[1]);
    if (command == NULL)
        return unknown_command(argv[1]);
    if (is_remote_job(command, argc - 2, argv + 2))
        return run_remote_job(argv, argv + 2);
    return run_command(command, argc, argv, 2);
}
