/* Loads plugins, composes and checks the config of a command. */
#include "cli/open_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/crash.h"
#include "cli/find_plugins.h"
#include "cli/find_python.h"
#include "cli/untrusted.h"
#include "cli/screen/screen.h"
#include "registry/registry.h"
#include "kiln/embed/run.h"
#include "registry/plugin/plugin_record.h"
#include "registry/plugin/plugin_trust.h"
#include "train/report/run_messages.h"

static void warn(void *ctx, const char *line)
{
    fprintf(stderr, "%s: warning: %s\n", ((const KilnArgs *)ctx)->command, line);
}

KilnStatus kiln_command_registry(const KilnArgs *args, KilnRegistry **ret)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_registry_new(&registry, &err);

    kiln_crash_registry(registry);
    if (status >= 0)
        status = kiln_plugins_find(args, &err);
    for (size_t i = 0; status >= 0 && i < args->plugins_found->count; i++) {
        const KilnFoundPlugin *plugin = &args->plugins_found->list[i];

        status = kiln_registry_load_from(registry, kiln_path_near(plugin->path), plugin->from,
                                         &err);
        if (status >= 0)
            kiln_plugin_allow(plugin->path); /* the user's own, or allowed before */
    }
    if (status >= 0)
        status = kiln_command_python(args, registry, &err);
    if (status < 0) {
        kiln_screen_error(args->command, &err);
        kiln_registry_free(registry);
        return status;
    }
    if (args->plugins_found->left_out != NULL)
        warn((void *)args, args->plugins_found->left_out);
    /* A run that is resumed reports it itself, in its log. */
    if (strcmp(args->command, "train") != 0 || args->multirun)
        kiln_plugins_compare(args->run_plugins, registry, warn, (void *)args);
    *ret = registry;
    return KILN_OK;
}

KilnComposeRequest kiln_command_request(const KilnArgs *args, const KilnRegistry *registry)
{
    return (KilnComposeRequest) {
        .config_path = args->config_path,
        .config_name = args->config_name,
        .config_dirs = args->config_dirs,
        .overrides = args->words,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
}

static bool is_multirun(const KilnConfig *config)
{
    char *mode = NULL;
    const bool multirun = kiln_config_text(config, "kiln.mode", &mode, NULL) >= 0 &&
                          strcmp(mode, "MULTIRUN") == 0;

    free(mode);
    return multirun;
}

/* The same for arguments with several values, which no single run can have. */
static bool sweep_is_multirun(const KilnComposeRequest *request)
{
    KilnSweepArguments arguments;
    KilnConfig *config = NULL;
    const bool multirun = kiln_compose_sweep(request, &config, &arguments, NULL) >= 0 &&
                          is_multirun(config);

    kiln_config_free(config);
    return multirun;
}

void kiln_command_advise(const KilnArgs *args, KilnStatus status)
{
    if (status != KILN_E_KEY && status != KILN_E_USAGE)
        return;
    for (size_t i = 0; i < args->n_words; i++) {
        const char *word = args->words[i], *value = strchr(word, '=');
        char key[64], flag[sizeof(key) + 2];

        if (value == NULL || (size_t)(value - word) >= sizeof(key))
            continue;
        snprintf(key, sizeof(key), "%.*s", (int)(value - word), word);

        const char *near = kiln_nearest(key, args->keys, args->n_keys), *of_flag;
        snprintf(flag, sizeof(flag), "--%s", key);
        if (kiln_flag_find(args->command, flag, &of_flag) != NULL)
            fprintf(stderr, "  kiln %s has the flag %s: try %s%s\n", args->command, flag, flag,
                    value);
        else if (near != NULL)
            fprintf(stderr, "  kiln %s takes %s=...: try %s%s\n", args->command, near, near, value);
    }
}

int kiln_command_refuse(const KilnArgs *args, KilnStatus status, const KilnError *err)
{
    const int exit_status = kiln_screen_result(args->command, status, err);

    kiln_command_advise(args, status);
    return exit_status;
}

/* Compose, check, print the errors. With `single`, *ret is NULL for the config of a sweep. */
static KilnStatus compose(const KilnArgs *args, const KilnComposeRequest *request, bool check,
                          bool single, const char *run, KilnConfig **ret, KilnError *ret_first)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnStatus status = kiln_errors_new(&errors);
    bool multirun = false;

    if (status >= 0) {
        status = kiln_compose(request, &config, errors);
        multirun = single && (status >= 0 ? is_multirun(config) : sweep_is_multirun(request));
    }
    if (multirun) {
        kiln_config_free(config);
        config = NULL;
        status = KILN_OK;
    } else if (status >= 0 && check) {
        status = kiln_config_check(config, request->registry, errors);
        if (status >= 0 && run != NULL)
            status = kiln_untrusted_outputs(args, config, request->registry, run, errors);
    }
    if (errors != NULL && !multirun)
        kiln_screen_errors(args->command, errors);
    kiln_command_advise(args, status);
    if (status < 0 && ret_first != NULL && kiln_errors_count(errors) > 0)
        kiln_error_set(ret_first, status, "%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    if (status < 0)
        kiln_config_free(config);
    else
        *ret = config;
    return status;
}

KilnStatus kiln_command_compose_request(const KilnArgs *args, const KilnComposeRequest *request,
                                        bool check, const char *run, KilnConfig **ret,
                                        KilnError *ret_first)
{
    return compose(args, request, check, false, run, ret, ret_first);
}

KilnStatus kiln_command_compose_single(const KilnArgs *args, const KilnRegistry *registry,
                                       KilnConfig **ret)
{
    KilnComposeRequest request = kiln_command_request(args, registry);

    return compose(args, &request, true, true, NULL, ret, NULL);
}

KilnStatus kiln_command_compose(const KilnArgs *args, const KilnRegistry *registry, bool check,
                                KilnConfig **ret)
{
    KilnComposeRequest request = kiln_command_request(args, registry);

    return compose(args, &request, check, false, NULL, ret, NULL);
}

int kiln_command_run(KilnArgs *args, bool compose, KilnCommandAction *action, void *ctx)
{
    KilnRegistry *registry = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status >= 0 && compose)
        status = kiln_command_compose(args, registry, true, &config);
    if (status >= 0)
        status = action(args, registry, config, ctx, &err);
    const int exit_status = status == KILN_E_INTERRUPTED && kiln_screen_signal_status() != 0
                                ? kiln_screen_signal_status()
                                : kiln_screen_result(args->command, status, &err);
    kiln_config_free(config);
    kiln_registry_free(registry);
    return exit_status;
}
