/* Loads plugins, composes and checks the config of a command. */
#include "cli/open_config.h"

#include "cli/crash.h"
#include "cli/untrusted.h"
#include "cli/screen/screen.h"
#include "kiln/run.h"
#include "registry/plugin_trust.h"

KilnStatus kiln_command_registry(const KilnArgs *args, KilnRegistry **ret)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_registry_new(&registry, &err);

    kiln_crash_registry(registry);
    for (size_t i = 0; status >= 0 && args->plugins[i] != NULL; i++) {
        status = kiln_registry_load(registry, args->plugins[i], &err);
        if (status >= 0)
            kiln_plugin_allow(args->plugins[i]); /* named by the user, or allowed before */
    }
    if (status < 0) {
        kiln_screen_error(args->command, &err);
        kiln_registry_free(registry);
        return status;
    }
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

KilnStatus kiln_command_compose_request(const KilnArgs *args, const KilnComposeRequest *request,
                                        bool check, const char *run, KilnConfig **ret)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = kiln_compose(request, &config, errors);
    if (status >= 0 && check)
        status = kiln_config_check(config, request->registry, errors);
    if (status >= 0 && check && run != NULL)
        status = kiln_untrusted_outputs(args, config, request->registry, run, errors);
    if (errors != NULL)
        kiln_screen_errors(args->command, errors);
    kiln_errors_free(errors);
    if (status < 0) {
        kiln_config_free(config);
        return status;
    }
    *ret = config;
    return KILN_OK;
}

KilnStatus kiln_command_compose(const KilnArgs *args, const KilnRegistry *registry, bool check,
                                KilnConfig **ret)
{
    KilnComposeRequest request = kiln_command_request(args, registry);

    return kiln_command_compose_request(args, &request, check, NULL, ret);
}
