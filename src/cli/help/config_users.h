/* Lists config files on a page of help: those that select a component, and those of a group. */
#ifndef KILN_CLI_HELP_CONFIG_USERS_H
#define KILN_CLI_HELP_CONFIG_USERS_H

#include "base/page.h"
#include "kiln/embed/config.h"

/* The files that name a component, then the files whose defaults lists select one of those:
 * "  model=resnet    conf/model/resnet.yaml". With `group` instead (NULL: none) the files in that
 * group and in the groups below it. */
KILN_NODISCARD KilnStatus kiln_config_users_print(KilnPage *page, const KilnComposeRequest *request,
                                                  const KilnComponent *component, const char *group,
                                                  KilnError *err);

#endif
