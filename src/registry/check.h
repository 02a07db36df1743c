/* The state of a check of a whole config (kiln_config_check), for the files that take part:
 * check_config.c walks the tree and its components, check_table.c reports what is wrong with a
 * mapping of options, unread_keys.c looks for keys without effect. */
#ifndef KILN_REGISTRY_CHECK_H
#define KILN_REGISTRY_CHECK_H

#include "registry/registry.h"
#include "schema/document.h"

/* A component that was met. */
typedef struct KilnCheckVisit {
    const KilnConfigNode *map;
    const KilnComponent *component; /* NULL: it names none, which was reported */
    bool open;                      /* being checked right now */
} KilnCheckVisit;

typedef struct KilnCheck {
    const KilnConfig *config;
    const KilnRegistry *registry;
    KilnErrors *errors; /* NULL: errors are not reported */
    KilnOutputVisit *visit_output;
    void *visit_ctx;
    KilnStatus status; /* of the first error */
    KilnCheckVisit *visits;
    size_t visit_count, visit_capacity;
    int depth; /* components within components */
} KilnCheck;

void kiln_check_add(KilnCheck *check, const KilnError *err);
/* Add "ORIGIN: KEY: MESSAGE" about `written`: the origin of its `value`, and below it the
 * interpolation through which it came. `value` NULL: the origin is in err->origin. */
void kiln_check_report(KilnCheck *check, const char *key, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err);
/* Where the errors of a mapping of options go while it is read (schema/document.h): they become
 * complete messages. An error that another node of the tree has too is reported only there. */
KilnReport kiln_check_reports(KilnCheck *check);
/* Report tasks and models that do not fit the datamodule or each other (registry/signature). */
void kiln_check_models(KilnCheck *check);
/* The key of the only option `name` in the config ("optimizer.momentum"), for suggestions, in the
 * config's arena; NULL: there is none, or several. */
const char *kiln_check_elsewhere(const KilnCheck *check, const char *name);

#endif
