/* The texts and examples of `kiln COMMAND --help`. tests/cli/help/test_docs.py runs the examples.
 */
#include "cli/help/command_help.h"

#include <string.h>

#include "cli/flags.h"

/* How all commands name a past run: cli/find_run.h. */
#define RUN                                                                                        \
    "RUN is a run folder (meaning its last checkpoint), a checkpoint, or `last` or `best` for "    \
    "the "                                                                                         \
    "newest run."

typedef struct CommandHelp {
    const char *name;
    const char *text;
    const char *const examples[19]; /* command, what it does, ..., NULL */
} CommandHelp;

static const CommandHelp pages[] = {
    { "eval",
      "Tests a checkpoint with the config that made it and prints the metrics as JSON. split=val "
      "validates it, split=train evaluates it on the training samples, in order and without "
      "augmentation. plots=DIR also draws confusion matrices and samples with predictions. " RUN
      " Overrides change the config, for example its data folder.",
      { "kiln eval last", "the newest run's last checkpoint", "kiln eval best",
        "the newest run's best checkpoint", "kiln eval outputs/DAY/TIME",
        "a run folder; its checkpoints/NAME work too", "kiln eval best split=val",
        "its validation metrics again", "kiln eval best split=train",
        "metrics on the training samples: val/.../train", "kiln eval best plots=pictures",
        "with pictures of right and wrong predictions", "kiln eval last batch_size=500",
        "with an override", NULL } },
    { "predict",
      "Prints one line of JSON for each sample: file, class, probabilities. output=FILE writes to "
      "a .jsonl, .csv or .safetensors file instead. INPUT is a file or folder of samples as the "
      "datamodule takes them: images, lines of a .json, .jsonl or .txt file, rows of a .csv, .tsv "
      "or "
      ".safetensors file. INPUT - answers each line of standard input at once: a text, or with "
      "format=jsonl (and where a sample is more than one text) a JSON object. "
      "split=test, val or train takes the datamodule's samples, with one file for each of several "
      "sets. " RUN,
      { "kiln predict best DIR", "all images in a folder, at any depth", "kiln predict RUN x.png",
        "one image", "kiln predict RUN list.jsonl",
        "a sample per line, such as {\"image\": \"x.png\"}", "kiln predict best DIR output=all.csv",
        "a table", "tail -f log | kiln predict RUN -", "texts from a pipe, line by line",
        "kiln predict best split=test output=all.csv",
        "the test samples; a test set `night` goes to all-night.csv",
        "kiln predict best reviews.csv", "the column of a CSV that the run was trained on",
        NULL } },
    { "explain-prediction",
      "Explains the score of one class (the predicted one, or --target) for each sample of INPUT, "
      "a file or folder as of `kiln predict`. Of images it writes pictures: the image, and beside "
      "it what speaks for the class in red and against it in blue. Of tables it prints what each "
      "column adds, of texts the weight of each token or n-gram. Attributions of integrated "
      "gradients and of trees add up to the difference between "
      "the scores of the sample and of the baseline. " RUN,
      { "kiln explain-prediction best x.png", "explanations/00000.png",
        "kiln explain-prediction best x.png --method occlusion --window 4",
        "what the score loses when squares of 4×4 pixels are covered",
        "kiln explain-prediction best x.png --method grad_cam --layer bn1",
        "coarse places, of a layer of the network",
        "kiln explain-prediction best DIR --output maps --steps 100", "all images of a folder",
        "kiln explain-prediction best x.png --target 3 --json", "another class, for programs",
        NULL } },
    { "generate",
      "Prints text as a language model continues the prompt (prompt=TEXT), token by token. "
      "input=FILE takes each line of a file as a prompt (input=- those of standard input) and "
      "prints a line of JSON for each. It ends after max_tokens (256), at the tokenizer's end of a "
      "text, or before a text given with stop=, which can be repeated. temperature=0 takes the "
      "most likely token; above, tokens are drawn (seed=), from the top_k most likely ones, or "
      "from those that make up top_p of the probability. repetition_penalty above 1 avoids tokens "
      "that occurred. " RUN,
      { "kiln generate best prompt='To be'", "256 tokens, drawn at temperature 1",
        "kiln generate best prompt='To be' temperature=0", "the most likely tokens",
        "kiln generate RUN prompt='To be' top_k=40 temperature=0.8 seed=2", "another text",
        "kiln generate best input=prompts.txt max_tokens=50", "many prompts at once", NULL } },
    { "graph",
      "Plans the training step, measures it for a second and prints every operation: what was "
      "fused into it, its output, its memory and how long that is needed, and its time. --svg "
      "draws the step's memory instead.",
      { "kiln graph model=resnet", "every operation of the step",
        "kiln graph model=resnet --depth 2", "one line for each block",
        "kiln graph model=resnet --depth 2 --svg step.svg", "a picture of the step's memory",
        "kiln graph --phase backward", "the gradients alone", NULL } },
    { "ckpt",
      "Inspects checkpoints. ls lists those of a run, or of all runs below a folder (default: "
      "outputs). show prints what is in one. verify checks all its checksums and names the damaged "
      "tensors. diff compares tensors, config and state of two. average writes a checkpoint with "
      "the mean of their weights, to test, predict or begin with. merge-lora writes the weights of "
      "a run with adapters, merged, to a safetensors file. " RUN,
      { "kiln ckpt ls", "all checkpoints below outputs/", "kiln ckpt ls RUN", "those of one run",
        "kiln ckpt show last", "position, parameters, state of the newest run's last",
        "kiln ckpt verify RUN", "exit status 1 when anything is damaged",
        "kiln ckpt diff RUN/checkpoints/best RUN", "the best against the last",
        "kiln ckpt average RUN last=2 output=RUN/averaged", "of its last two checkpoints",
        "kiln ckpt merge-lora RUN output=merged.safetensors",
        "for weights=merged.safetensors, or PyTorch", NULL } },
    { "verify-resume",
      "Runs a config once undisturbed. Then runs it again and again, kills it with SIGKILL at "
      "random points (at any time, in an epoch, in validation, while saving, between the batches "
      "of a step, before the first checkpoint, in the final test, again after a resume), resumes "
      "it, and compares all bytes of the checkpoints and of the loggers' files except wall-clock "
      "times. Exit status 1 and the first differences when anything differs. Takes the arguments "
      "of train; the run should take seconds.",
      { "kiln verify-resume trainer.max_epochs=3", "20 kills of the default config",
        "kiln verify-resume -n 200 model=cnn", "200 kills of another",
        "kiln verify-resume trainer.accumulate_grad_batches=4 trainer.limit_train_batches=30",
        "keep it short", NULL } },
    { "replay",
      "Trains the batches of a flight record again in a scratch folder, from the nearest "
      "checkpoint "
      "of the run or from the beginning. Reports which layer and operation made the first NaN or "
      "infinity and which sample caused it, or whether every loss and gradient norm is the same. "
      "The run needs the callback flight_recorder. " RUN,
      { "train callbacks=flight_recorder callbacks.flight_recorder.keep=true",
        "a run that keeps its record even when it ends well", "kiln replay last",
        "after a NaN, a spike, a crash or a kill", "kiln replay RUN trainer.precision=32-true",
        "would it happen with other options?", NULL } },
    { "sweep",
      "For the folder of a sweep that `train -m` made, finished or still running (`last`: the "
      "newest one below multirun/). report prints the best jobs, how much of the metric's variance "
      "each parameter explains, alone and in pairs, values that lie at an end of the space, and "
      "the command lines to run next. It writes them to DIR/report: report.json, importance.csv, "
      "pictures (history, parallel, slice, importance), and best.yaml, with which `train "
      "experiment=best` repeats the best job. add adds a job, with a value of each key that the "
      "sweep varies, and of others as far as they differ from the config. stop ends a job with a "
      "checkpoint, as if the sweeper had stopped it; one that waits does not start. If no launcher "
      "runs, `train -m --resume DIR` takes the request. simulate shows what another sweeper, "
      "pruner "
      "and number of workers would have done with the finished jobs of the sweep, or with the rows "
      "of a CSV file (a column for each parameter, and 1, 2, 3, ... for the metric after each "
      "epoch), on a virtual clock, in milliseconds; it runs and writes nothing.",
      { "kiln sweep report last", "the newest sweep",
        "kiln sweep report multirun/2026-11-20/21-03-11", "another one",
        "kiln sweep report last --write best", "and make its best config an experiment",
        "train experiment=best", "then: repeat the best job",
        "kiln sweep report last --json | jq .best", "for programs; writes no files",
        "kiln sweep add last lr=0.3 model=mlp", "one more job of the newest sweep",
        "kiln sweep stop multirun/2026-11-20/21-03-11 7", "the end of job 7",
        "kiln sweep simulate last kiln/sweeper=random kiln/pruner=asha",
        "would asha have found the best job, with fewer epochs?",
        "kiln sweep simulate last kiln/sweeper=tpe kiln.launcher.n_jobs=8 --runs 100",
        "8 workers; medians of 100 runs", NULL } },
    { "tune",
      "Searches a learning rate, the largest batch that fits into memory, or both, for the run "
      "that the arguments describe: batch_size by memory estimates and a few steps, lr by training "
      "some steps with increasing rates. Prints the command that trains with the result, and draws "
      "the curve of losses into the run folder. The searches' options are those of the callbacks "
      "lr_finder and batch_size_finder, with which a run searches by itself.",
      { "kiln tune lr", "for the default config", "kiln tune lr model=resnet batch_size=128",
        "for another one", "kiln tune batch_size model=resnet",
        "the largest batch, and the fastest one", "kiln tune model=resnet",
        "both: the rate for the batch that was found", NULL } },
    { "tokenizer",
      "Trains tokenizers and uses them. train learns from the lines of files, or from a column of "
      ".csv, .tsv, .json, .jsonl and .parquet files; .gz and .zst files are unpacked, and - is "
      "standard "
      "input. "
      "Overrides set the tokenizer "
      "and its options (tokenizer=bpe, words, ...). It writes a tokenizer.json as "
      "Hugging Face's library does. encode prints the ids, tokens and character offsets of each "
      "line "
      "of standard input as JSON. decode prints the text of each line of ids. show prints the "
      "model, "
      "its size and its special tokens.",
      { "kiln tokenizer train tokenizer=bpe tokenizer.vocab_size=5000 files=a.txt,b.txt "
        "output=bpe.json",
        "byte-level BPE", "kiln tokenizer train tokenizer=unigram files=reviews.csv column=text",
        "of the column text, to tokenizer.json", "kiln tokenizer encode bpe.json <a.txt",
        "a line of JSON for each line", "echo '12 7 [3]' | kiln tokenizer decode bpe.json",
        "the text of ids", "kiln tokenizer show bpe.json", "what is in a file", NULL } },
    { "plugin",
      "new writes a folder with a component of your own: NAME.c, which you change into yours, a "
      "Makefile, a config file that selects it, and test.sh, which builds it, trains and sweeps. "
      "It works as it is. KIND is a kind of component (callback, datamodule, transform, sampler, "
      "batch_transform, module, model, loss, metric, optimizer, scheduler, logger, strategy, "
      "sweeper, pruner, launcher, tokenizer), operation for a model with an operation of its own, "
      "or "
      "file_datamodule for data in files. check looks for breaches of the contract of each kind, "
      "in the components of a plugin "
      "or in one that is built in: options, building and releasing, memory, what the kind has to "
      "do (samples, gradients, updates, ...), and tiny runs that must end, give the same bytes "
      "again, with two threads, and after a resume. Each check runs in a process of its own: one "
      "that crashes, hangs or exits is reported with the function that did. KIND.OPTION=VALUE sets "
      "an option of the component; other overrides are those of the configs that it is trained in. "
      "Exit status 1 if a check fails.",
      { "kiln plugin new callback mine", "mine/mine.c: a callback", "make -C mine",
        "builds mine.so", "train --plugin mine/mine.so callbacks=mine", "uses it",
        "train --plugin mine/mine.so -m callbacks=mine callbacks.mine.value=0.1,0.5",
        "sweeps over an option", "kiln plugin check ./mine.so", "every component of a plugin",
        "kiln plugin check ./mine.so model/resmlp model.depth=2", "one of them, with an option",
        "kiln plugin check callback/ema", "a built-in one",
        "kiln plugin check ./mine.so --json | jq .findings", "for programs", NULL } },
    { "list",
      "Lists all components with one line each. `kiln show` has their options. --json has all of "
      "them, and those of the sections of a config.",
      { "kiln list", "the built-in components", "kiln list --plugin ./mine.so",
        "those of a plugin too", "kiln show optimizer", "the optimizers, with options",
        "kiln list --json | jq '.components[].name'", "for programs", NULL } },
    { "show",
      "Shows a component: its options with types, ranges and defaults, a config file that selects "
      "it, overrides to try, and the files that select it. Shows groups, sections and config files "
      "as well.",
      { "kiln show model/resnet", "a component; its name alone works when it is unique",
        "kiln show optimizer", "a group: its components and files", "kiln show trainer",
        "the options of a section", "kiln show experiment/mnist/cnn", "a config file", NULL } },
    { "schema",
      "Prints a JSON Schema with which an editor completes and checks config files. GROUP is the "
      "folder of the files (model, callbacks); without it the schema is for the primary config.",
      { "kiln schema >config.schema.json", "for conf/config.yaml",
        "kiln schema model >model.schema.json", "for conf/model/*.yaml", NULL } },
    { "top",
      "Shows your live runs on this machine, jobs of a sweep together: folder, overrides, "
      "progress, "
      "remaining time, speed and metrics. On a terminal it refreshes twice a second until q; "
      "elsewhere it prints once.",
      { "kiln top", "watch", "kiln top --once", "print once", "kiln top --json | jq '.[].run_dir'",
        "for programs", NULL } },
    { "init",
      "Writes a starting project: a commented conf/ with schemas for the editor, a README.md and "
      "a .gitignore. Overwrites nothing.",
      { "kiln init digits", "a new folder", "kiln init .", "here, if there is no conf/", NULL } },
    { "new",
      "Looks at your data and writes a starting config that trains as it is. It reads: a folder "
      "with "
      "a folder of images for each class, or such folders in train/, val/ and test/ (also in a "
      ".tar); images with a list of their labels or of the texts in them; images with boxes in "
      "COCO's JSON or YOLO's texts; folders images/ and masks/; tables in CSV, TSV, Parquet, "
      "JSON and SQLite; texts with labels in CSV, in lines that begin with __label__, or in "
      "a "
      "folder for each class; words with tags in CoNLL columns; two text files whose lines are "
      "translations; LibSVM's rows, also with queries to rank; plain text for a language model. Of "
      "several files, those called train, val (dev, valid) and test are the splits. It says what "
      "it "
      "assumed, what looks odd, and what to run next. Without -o the config is an experiment of "
      "./conf, which need not have any other file.",
      { "kiln new pets", "pets/cat/*.jpg, pets/dog/*.jpg: a classifier of images",
        "kiln new houses.csv --target=price", "a table; price is a number: regression",
        "kiln new reviews/train.csv reviews/test.csv", "the files of the splits",
        "kiln new book.txt -o book.yaml", "a language model, with a config of its own",
        "train experiment=houses", "then: train", NULL } },
    { "import-hydra",
      "Turns a config tree that was written for Hydra with PyTorch, Lightning, torchvision and "
      "torchmetrics into one for kiln, in the folder conf. Reads all YAML files below DIR. Says "
      "for "
      "each _target_ which component does its work, and with file and line which options changed "
      "or were left out, which classes have no counterpart and what to do about them. Comments and "
      "spellings stay; what is left out becomes a comment. Ends with the command that trains.",
      { "kiln import-hydra configs", "writes conf/", "kiln import-hydra configs --output kiln-conf",
        "another folder", "kiln import-hydra --classes", "all classes that it knows", NULL } },
    { "check-data",
      "Reads the data of a config as train does, and looks for mistakes in them: samples that "
      "can't be "
      "read, NaN, empty samples, images of one colour; classes that training lacks, with few "
      "samples "
      "or many more than others; equal samples in two splits or in one, also with contrary labels; "
      "lengths and truncation of texts, unknown tokens. Of tables: missing values, ids and "
      "constants, "
      "columns that give the target away, values that training lacks; of images: sizes and grey "
      "ones; of boxes: copies, and those outside of images; of lines: rare characters and long "
      "texts; of tags: spans that don't begin, or end with punctuation. Ends with the counts; exit "
      "status 1 if there are errors. Takes the arguments of train. `train --plan` has a short "
      "form.",
      { "kiln check-data", "the default config",
        "kiln check-data datamodule=image_folder datamodule.root=DIR", "your data",
        "kiln check-data --samples 10000", "fewer samples of large data",
        "kiln check-data --json | jq .errors", "for programs", NULL } },
    { "explain",
      "Shows where the values of a past run came from: where each was set, what it replaced, "
      "through which interpolations. " RUN,
      { "kiln explain last optimizer.lr", "one value of the newest run",
        "kiln explain outputs/DAY/TIME", "all values of a run",
        "train --explain optimizer.lr lr=0.3", "the same before a run", NULL } },
    { "completion",
      "Prints a script with which a shell completes commands, groups, options, keys, values and "
      "files.",
      { "eval \"$(kiln completion bash)\"", "in ~/.bashrc", "eval \"$(kiln completion zsh)\"",
        "in ~/.zshrc, after compinit", "kiln completion fish | source",
        "in ~/.config/fish/config.fish", NULL } },
    { "doctor",
      "Shows what kiln finds on this machine: the processor and its caches, the features that "
      "kernels "
      "use, which kernels they select and what would be used without them, threads and what limits "
      "them, memory, which parts of kiln lack a library and how to install it, the folders that "
      "can be written, and the loaded libraries. Then it tests itself for a second: it compares "
      "the kernels with the reference backend, and trains; exit status 1 if a result is wrong. "
      "The environment variable KILN_ISA caps the features.",
      { "kiln doctor", "this machine", "KILN_ISA=avx2 kiln doctor", "capped at AVX2",
        "kiln doctor --json", "for programs, and for reports of faults", NULL } },
    { "version", "Prints the version of the program and of its plugin interface.", { NULL } },
};

void kiln_command_help(KilnPage *page, const KilnCommand *command)
{
    const CommandHelp *help = pages;

    while (strcmp(help->name, command->name) != 0) /* every command but train has a page */
        help++;
    kiln_page_words(page, 7, "usage: kiln");
    kiln_text_printf(&page->text, " %s ", command->name);
    kiln_page_words(page, 7, command->usage);
    kiln_text_append(&page->text, "\n\n");
    kiln_page_words(page, 0, help->text);
    kiln_page_end(page);
    if (help->examples[0] != NULL)
        kiln_page_heading(page, "examples");
    for (size_t i = 0; help->examples[i] != NULL; i += 2)
        kiln_page_pair(page, 48, help->examples[i], "%s", help->examples[i + 1]);
    kiln_flags_write(page, command->name);
}
