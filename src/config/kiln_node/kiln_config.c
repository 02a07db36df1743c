/* The files behind the node `kiln`: what a run is told about itself, and the
 * groups that a config made for Hydra may choose from. */
#include "config/kiln_node/kiln_config.h"

#define FILE_OF(name, content)                                                                     \
    {                                                                                              \
        .path = name, .text = content, .size = sizeof(content) - 1                                 \
    }
/* How messages are printed is not configured by YAML: these options are there so
 * that configs which choose them compose. */
#define NOTHING(name) FILE_OF(name, "{}\n")

static const char config[] =
    "defaults:\n"
    "  - launcher: basic\n"
    "  - sweeper: basic\n"
    "  - output: default\n"
    "  - help: default\n"
    "  - hydra_help: default\n"
    "  - hydra_logging: default\n"
    "  - job_logging: default\n"
    "  - callbacks: null\n"
    "  - env: default\n"
    "  - _self_\n"
    "mode: null\n"
    "searchpath: []\n"
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
    NOTHING("kiln/launcher/basic.yaml"),
    FILE_OF("kiln/sweeper/basic.yaml", "max_batch_size: null\nparams: null\n"),
    NOTHING("kiln/output/default.yaml"),
    NOTHING("kiln/help/default.yaml"),
    NOTHING("kiln/hydra_help/default.yaml"),
    NOTHING("kiln/env/default.yaml"),
    NOTHING("kiln/hydra_logging/default.yaml"),
    NOTHING("kiln/hydra_logging/colorlog.yaml"),
    NOTHING("kiln/hydra_logging/hydra_debug.yaml"),
    NOTHING("kiln/hydra_logging/none.yaml"),
    NOTHING("kiln/hydra_logging/disabled.yaml"),
    NOTHING("kiln/job_logging/default.yaml"),
    NOTHING("kiln/job_logging/colorlog.yaml"),
    NOTHING("kiln/job_logging/stdout.yaml"),
    NOTHING("kiln/job_logging/none.yaml"),
    NOTHING("kiln/job_logging/disabled.yaml"),
    { .path = NULL },
};
