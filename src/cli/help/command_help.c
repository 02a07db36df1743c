/* What each command is for, as --help says it. */
#include "cli/help/command_help.h"

#include <string.h>

#include "cli/flags.h"

/* How every command that looks at a past run names it: src/cli/find_run.h. */
#define RUN                                                                                        \
    "RUN is a run folder (of checkpoints its last), a checkpoint in it, or `last` or `best` for "  \
    "the newest run."

typedef struct CommandHelp {
    const char *name;
    const char *text;
    const char *const examples[15]; /* command, what it does, ..., NULL */
} CommandHelp;

static const CommandHelp commands[] = {
    { "eval",
      "Tests a checkpoint with the config that made it, or with split=val validates it "
      "(split=train: on the training samples, in order and not augmented), and prints the metrics "
      "as JSON; with plots=DIR it draws confusion matrices and samples with predictions into DIR, "
      "too. " RUN " Overrides change the config, its data folder say.",
      { "kiln eval last", "the newest run's last checkpoint", "kiln eval best",
        "the newest run's best checkpoint", "kiln eval outputs/DAY/TIME",
        "a run folder; its checkpoints/NAME work too", "kiln eval best split=val",
        "its validation metrics again", "kiln eval best split=train",
        "what it makes of what it learned from: val/.../train", "kiln eval best plots=pictures",
        "with what it got right and wrong, as pictures", "kiln eval last batch_size=500",
        "with an override", NULL } },
    { "predict",
      "Prints one line of JSON for each image: file, class, probabilities; or writes them to a "
      "file, output=FILE, as its name ends: .jsonl, .csv, .safetensors. INPUT is an image or a "
      "folder of them; split=test, val or train takes the samples of the datamodule, and of "
      "several sets each has a file of its own. " RUN,
      { "kiln predict best DIR", "all PNG images in a folder, at any depth",
        "kiln predict RUN x.png", "one image", "kiln predict best DIR output=all.csv", "a table",
        "kiln predict best split=test output=all.csv",
        "the test samples; a test set `night` goes to all-night.csv", NULL } },
    { "graph",
      "Shows the training step as it is planned, after a second of trying it: every operation with "
      "what was joined to it, its output, where that lies in memory and how long, and the time it "
      "takes; as a table, or as a picture with the memory's use over the step.",
      { "kiln graph model=resnet", "every operation of the step",
        "kiln graph model=resnet --depth 2", "one line for each block",
        "kiln graph model=resnet --depth 2 --svg step.svg", "the picture of the same",
        "kiln graph --phase backward", "the gradients alone", NULL } },
    { "ckpt",
      "Looks at checkpoints. ls: those of a run, or of all runs below a folder (default: outputs). "
      "show: what is in one. verify: all its checksums; what is damaged, down to the tensor. diff: "
      "tensors, config and state that differ between two. " RUN,
      { "kiln ckpt ls", "all checkpoints below outputs/", "kiln ckpt ls RUN", "those of one run",
        "kiln ckpt show last", "position, parameters, state of the newest run's last",
        "kiln ckpt verify RUN", "exit status 1 when anything is damaged",
        "kiln ckpt diff RUN/checkpoints/best RUN", "the best against the last", NULL } },
    { "verify-resume",
      "Runs a config once undisturbed; then again and again, killed by SIGKILL at random moments "
      "(at "
      "any time, in an epoch, in validation, while saving, between the batches of a step, before "
      "the "
      "first checkpoint, in the closing test, again while resumed) and resumed; and compares all "
      "bytes of the checkpoints and what the loggers wrote, times of day aside. Exit status 1 when "
      "anything differs, with what differs first. Takes the arguments of train; the run should "
      "take "
      "seconds.",
      { "kiln verify-resume trainer.max_epochs=3", "20 kills of the default config",
        "kiln verify-resume -n 200 model=cnn", "200 kills of another",
        "kiln verify-resume trainer.accumulate_grad_batches=4 trainer.limit_train_batches=30",
        "keep it short", NULL } },
    { "replay",
      "Trains the batches of a flight record again, from the nearest checkpoint of its run or from "
      "the beginning, in a scratch folder. Says which layer and operation made the first NaN or "
      "infinity and which sample brought it; or whether every loss and gradient norm comes out as "
      "it was. The run needs the callback flight_recorder. " RUN,
      { "train callbacks=flight_recorder callbacks.flight_recorder.keep=true",
        "a run that keeps a record, also when it ends well", "kiln replay last",
        "after a NaN, a spike, a crash or a kill", "kiln replay RUN trainer.precision=32-true",
        "would it happen with other options?", NULL } },
    { "tune",
      "Searches a learning rate, or the largest batch that memory allows, or both, for the run "
      "that "
      "the arguments describe: batch_size by forecasts and a few steps of the real thing, lr by "
      "training some steps with growing rates. Prints the command that trains with what was found; "
      "the curve of the losses is drawn into the run folder, too. Options of the searches are "
      "those of callbacks lr_finder and batch_size_finder, with which a run searches by itself.",
      { "kiln tune lr", "for the default config", "kiln tune lr model=resnet batch_size=128",
        "for another one", "kiln tune batch_size model=resnet",
        "the largest batch, and the fastest one", "kiln tune model=resnet",
        "both: the rate for the batch that was found", NULL } },
    { "list",
      "Lists components with one line each; with GROUP, those of one kind with their options.",
      { "kiln list", "everything that there is", "kiln list model", "all networks, with options",
        "kiln list model --plugin ./mine.so", "those of a plugin too", NULL } },
    { "show",
      "Shows one component: its options with types, ranges and defaults, a config file that "
      "selects it, the files that choose it, and overrides to try. Shows a group, a section or a "
      "config file as well.",
      { "kiln show model/resnet", "a component; the name alone does where only one has it",
        "kiln show optimizer", "a group: its components and files", "kiln show trainer",
        "the options of a section", "kiln show experiment/mnist/cnn", "a config file", NULL } },
    { "schema",
      "Describes what config files may say: an outline to read, or a JSON Schema with which an "
      "editor completes and checks YAML. GROUP is the folder of the files (model, callbacks); "
      "without it the primary config is described.",
      { "kiln schema", "groups, files, keys", "kiln schema --json >conf/.schema/config.json",
        "for conf/config.yaml", "kiln schema --json model >conf/.schema/model.json",
        "for conf/model/*.yaml", NULL } },
    { "top",
      "Shows the runs of yours that are live on this machine, jobs of sweeps together: folder, "
      "what "
      "was asked for, how far it is, how long it still takes, speed and metrics. On a terminal it "
      "looks again twice a second until q; elsewhere it looks once.",
      { "kiln top", "watch", "kiln top --once", "one look", "kiln top --json | jq '.[].run_dir'",
        "for programs", NULL } },
    { "init",
      "Writes a starting project: a commented conf/ with schemas for the editor, a README.md and "
      "a .gitignore. Overwrites nothing.",
      { "kiln init digits", "a new folder", "kiln init .", "here, if there is no conf/", NULL } },
    { "explain",
      "Tells where values of a past run came from: who set them, what they replaced, through "
      "which interpolations. " RUN,
      { "kiln explain last optimizer.lr", "one value of the newest run",
        "kiln explain outputs/DAY/TIME", "all values of a run",
        "train --explain optimizer.lr lr=0.3", "the same before a run", NULL } },
    { "completion",
      "Prints a script that teaches a shell to complete commands, groups, options, keys, values "
      "and files.",
      { "eval \"$(kiln completion bash)\"", "in ~/.bashrc", "eval \"$(kiln completion zsh)\"",
        "in ~/.zshrc, after compinit", "kiln completion fish | source",
        "in ~/.config/fish/config.fish", NULL } },
    { "version", "Prints versions of the program and of its plugin interface.", { NULL } },
};

void kiln_command_help(KilnPage *page, const char *name, const char *usage, const char *summary)
{
    const CommandHelp *help = NULL;

    for (size_t i = 0; i < KILN_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            help = &commands[i];
    kiln_page_words(page, 7, "usage: kiln");
    kiln_text_char(&page->text, ' ');
    kiln_page_words(page, 7, usage);
    kiln_text_append(&page->text, "\n\n");
    kiln_page_words(page, 0, help != NULL ? help->text : summary);
    kiln_page_end(page);
    if (help != NULL && help->examples[0] != NULL)
        kiln_page_heading(page, "examples");
    for (size_t i = 0; help != NULL && help->examples[i] != NULL; i += 2)
        kiln_page_pair(page, 48, help->examples[i], help->examples[i + 1]);
    kiln_flags_write(page, name);
}
