/* The built-in files of the node `kiln`: facts about the run, and the groups that a config made for
 * Hydra may select from. */
#include "config/kiln_node/builtin_files.h"

#define FILE_OF(name, content)                                                                     \
    {                                                                                              \
        .path = name, .text = content, .size = sizeof(content) - 1                                 \
    }
/* kiln's output is not configured by YAML: these options only let Hydra configs compose. */
#define EMPTY(name) FILE_OF(name, "{}\n")

static const char config[] =
    "defaults:\n"
    "  - launcher: basic\n"
    "  - sweeper: basic\n"
    "  - pruner: null\n"
    "  - output: default\n"
    "  - help: default\n"
    "  - hydra_help: default\n"
    "  - hydra_logging: default\n"
    "  - job_logging: default\n"
    "  - callbacks: null\n"
    "  - env: default\n"
    "  - _self_\n"
    "mode: null\n"
    "needs: {}\n"
    "searchpath: []\n"
    "plugins: []\n"
    "python: null\n"
    "run: {}\n"
    "sweep:\n"
    "  subdir: ${kiln.job.num}\n"
    "output_subdir: .kiln\n"
    "verbose: false\n"
    "overrides: {kiln: [], task: []}\n"
    "job:\n"
    "  name: ???\n"
    "  chdir: null\n"
    "  override_dirname: ???\n"
    "  id: ???\n"
    "  num: ???\n"
    "  config_name: ???\n"
    "  env_set: {}\n"
    "  env_copy: []\n"
    "  config:\n"
    "    override_dirname: {kv_sep: '=', item_sep: ',', exclude_keys: []}\n"
    "runtime:\n"
    "  version: ???\n"
    "  cwd: ???\n"
    "  config_sources: []\n"
    "  output_dir: ???\n"
    "  choices: {}\n";

const KilnShippedFile kiln_builtin_conf[] = {
    { .path = "kiln/config.yaml", .text = config, .size = sizeof(config) - 1 },
    EMPTY("kiln/launcher/basic.yaml"),
    FILE_OF("kiln/sweeper/basic.yaml", "max_batch_size: null\nparams: null\n"),
    EMPTY("kiln/output/default.yaml"),
    EMPTY("kiln/help/default.yaml"),
    EMPTY("kiln/hydra_help/default.yaml"),
    EMPTY("kiln/env/default.yaml"),
    EMPTY("kiln/hydra_logging/default.yaml"),
    EMPTY("kiln/hydra_logging/colorlog.yaml"),
    EMPTY("kiln/hydra_logging/hydra_debug.yaml"),
    EMPTY("kiln/hydra_logging/none.yaml"),
    EMPTY("kiln/hydra_logging/disabled.yaml"),
    EMPTY("kiln/job_logging/default.yaml"),
    EMPTY("kiln/job_logging/colorlog.yaml"),
    EMPTY("kiln/job_logging/stdout.yaml"),
    EMPTY("kiln/job_logging/none.yaml"),
    EMPTY("kiln/job_logging/disabled.yaml"),
    { .path = NULL },
};
