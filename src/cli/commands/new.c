/* kiln new: looks at a user's data and writes a config that trains on them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/new/new_config.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "cli/screen/work_progress.h"

/* Where the config goes, and what trains with it. */
typedef struct Output {
    const char *path;
    const char *train;     /* the arguments of train that select it */
    bool in_group, exists; /* as an option of a group; the file is there already */
} Output;

static const char ending[] = ".yaml";

/* A config in a group experiment/ is selected by name; any other is a primary config. */
static KilnStatus choose_output(KilnNewConfig *config, const char *given, const char *data,
                                Output *ret, KilnError *err)
{
    static const char group[] = "conf/experiment/";
    const char *path = given;

    if (path == NULL)
        path = kiln_arena_printf(&config->arena, "%s%s%s", group, kiln_new_stem(config, data),
                                 ending);
    if (path == NULL)
        return kiln_error_nomem(err, strlen(data));
    if (!kiln_ends_with(path, ending) || strlen(path) == strlen(ending))
        return kiln_error_set(err, KILN_E_USAGE, "-o %s: expected a file that ends in .yaml", path);
    ret->path = path;
    ret->exists = kiln_is_file(path);
    ret->in_group = kiln_starts_with(path, group);
    const size_t stem = strlen(path) - strlen(ending);
    const char *slash = strrchr(path, '/');
    KilnText words = { 0 };
    if (ret->in_group) {
        kiln_text_printf(&words, "experiment=%.*s", (int)(stem - strlen(group)),
                         path + strlen(group));
    } else {
        const char *dir = slash != NULL
                              ? kiln_arena_strndup(&config->arena, path, (size_t)(slash - path))
                              : ".";
        const char *name = slash != NULL ? slash + 1 : path;

        kiln_text_append(&words, "-cp ");
        kiln_text_shell_word(&words, dir != NULL && dir[0] != '\0' ? dir : "/");
        kiln_text_printf(&words, " -cn %.*s", (int)(strlen(name) - strlen(ending)), name);
    }
    ret->train = kiln_text_to_arena(&words, &config->arena);
    return ret->train != NULL ? KILN_OK : kiln_error_nomem(err, stem);
}

/* ---- The file -------------------------------------------------------------------------------- */

/* Says at the top what the config is for; lines are not wrapped. */
static char *comment_of(const KilnNewConfig *config, const char *const *paths, const Output *output)
{
    KilnText text = { 0 };

    kiln_text_append(&text, "# Written by `kiln new`");
    for (; *paths != NULL; paths++)
        kiln_text_printf(&text, "%s %s", text.length > 23 ? "," : " of", *paths);
    kiln_text_append(&text, ".\n");
    for (size_t i = 0; i < config->n_said; i++)
        kiln_text_printf(&text, "#   %s: %s\n", config->said[i].name, config->said[i].text);
    kiln_text_printf(&text, "#   train %s\n", output->train);
    /* A line end in a name would end the comment. */
    for (size_t i = 0; i + 1 < text.length; i++)
        if (text.data[i] == '\n' && text.data[i + 1] != '#')
            text.data[i] = ' ';
    return kiln_text_take(&text);
}

static KilnStatus write_config(const KilnNewConfig *config, const char *const *paths,
                               const Output *output, KilnError *err)
{
    char *comment = comment_of(config, paths, output), *text = NULL;
    KilnStatus status = comment != NULL
                            ? kiln_new_text(config, output->in_group, comment, &text, err)
                            : kiln_error_nomem(err, 256);

    if (status >= 0)
        status = kiln_dir_make_parent(output->path, err);
    if (status >= 0)
        status = kiln_file_write(output->path, text, strlen(text), err);
    free(comment);
    free(text);
    return status;
}

/* ---- The report ------------------------------------------------------------------------------ */

enum { TEXT = 12, COMMANDS = 52 };

static KilnStatus report(const KilnNewConfig *config, const Output *output, KilnError *err)
{
    KilnPage page = kiln_screen_page();
    KilnText command = { 0 };

    kiln_page_heading(&page, "assumed");
    for (size_t i = 0; i < config->n_said; i++)
        kiln_page_pair(&page, TEXT, config->said[i].name, "%s", config->said[i].text);
    if (config->n_odd > 0)
        kiln_page_heading(&page, "odd");
    for (size_t i = 0; i < config->n_odd; i++) {
        kiln_text_append(&page.text, "  - ");
        kiln_page_words(&page, 4, config->odd[i].text);
        kiln_page_end(&page);
    }
    kiln_page_heading(&page, "%s %s", output->exists ? "replaced" : "wrote", output->path);
    kiln_page_heading(&page, "next");
    kiln_text_printf(&command, "kiln check-data %s", output->train);
    kiln_page_pair(&page, COMMANDS, command.data != NULL ? command.data : "",
                   "look for mistakes in the data");
    kiln_text_clear(&command);
    kiln_text_printf(&command, "train %s", output->train);
    kiln_page_pair(&page, COMMANDS, command.data != NULL ? command.data : "", "train");
    kiln_text_append(&command, " --plan");
    kiln_page_pair(&page, COMMANDS, command.data != NULL ? command.data : "",
                   "its layers, memory and time, before it runs");
    if (config->task != NULL && strcmp(config->task, "language_model") == 0)
        kiln_page_pair(&page, COMMANDS, "kiln generate best prompt=TEXT", "then: continue a text");
    else
        kiln_page_pair(&page, COMMANDS, "kiln predict best FILE", "then: predict your own samples");
    kiln_text_release(&command);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

/* ---- The command ----------------------------------------------------------------------------- */

static KilnStatus make(KilnArgs *args, KilnNewConfig *config, const Output *output, KilnError *err)
{
    KilnWorkProgress progress = kiln_work_progress_open();
    const KilnPoll poll = { kiln_work_progress_poll, &progress };

    config->poll = &poll;
    const KilnStatus status = kiln_new_look(config, args->words, args->n_words, err);
    kiln_work_progress_close(&progress);
    config->poll = NULL;
    if (status >= 0 && config->arena.failed)
        return kiln_error_nomem(err, 0);
    return status >= 0 ? write_config(config, args->words, output, err) : status;
}

static KilnStatus new (KilnArgs *args, const KilnRegistry *registry, KilnConfig *unused, void *ctx,
                       KilnError *err)
{
    KilnNewConfig config = { .target = args->target, .table = args->table };
    Output output = { 0 };

    (void)registry;
    (void)unused;
    (void)ctx;
    if (args->n_words == 0)
        return kiln_error_set(err, KILN_E_USAGE,
                              "new: needs data: a folder, a file, or the files of all splits "
                              "(`kiln new --help`)");
    for (size_t i = 0; i < args->n_words; i++)
        if (access(args->words[i], F_OK) != 0)
            return kiln_error_errno(err, args->words[i]);
    KilnStatus status = choose_output(&config, args->output, args->words[0], &output, err);
    if (status >= 0 && output.exists && !args->force)
        status = kiln_error_set(err, KILN_E_USAGE,
                                "%s exists; --force replaces it, -o FILE.yaml writes another one",
                                output.path);
    if (status >= 0)
        status = make(args, &config, &output, err);
    if (status >= 0)
        status = report(&config, &output, err);
    kiln_new_release(&config);
    return status;
}

int kiln_command_new(KilnArgs *args)
{
    return kiln_command_run(args, false, new, NULL);
}
