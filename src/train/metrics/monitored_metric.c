/* Metrics that components monitor, by an option such as monitor=val/loss: whether the run logs
 * them, and which values are better. Declared in kiln/trainer.h. */
#include <string.h>

#include "base/text.h"
#include "config/provenance/error_origin.h"
#include "schema/bind.h"
#include "train/trainer.h"

static bool is_in(const char *const *logs, const char *name)
{
    for (size_t i = 0; logs[i] != NULL; i++)
        if (strcmp(logs[i], name) == 0)
            return true;
    return false;
}

/* The callback that declares that it logs `name`, as its *ret_i-th value; NULL: none. */
static const KilnCallbackOps *logged_by(const KilnTrainer *trainer, const char *name, size_t *ret_i)
{
    for (size_t k = 0; k < trainer->hooks.n_all; k++) {
        const KilnCallbackOps *ops = trainer->hooks.all[k].ops;

        for (size_t i = 0; ops->logs != NULL && ops->logs[i] != NULL; i++)
            if (strcmp(ops->logs[i], name) == 0) {
                *ret_i = i;
                return ops;
            }
    }
    return NULL;
}

unsigned kiln_trainer_declared_flags(const KilnTrainer *trainer, const char *name)
{
    size_t i = 0;
    const KilnCallbackOps *ops = logged_by(trainer, name, &i);

    return ops != NULL && ops->log_flags != NULL ? ops->log_flags[i] : 0u;
}

static KilnMode declared_mode(const KilnTrainer *trainer, const char *name)
{
    const KilnMode mode = kiln_metrics_mode(trainer->metrics, name);

    return mode != KILN_MODE_AUTO ? mode
                                  : kiln_log_mode(kiln_trainer_declared_flags(trainer, name));
}

bool kiln_trainer_logs(const KilnTrainer *trainer, const char *name)
{
    if (kiln_metrics_declared(trainer->metrics, KILN_PHASE_FIT, name))
        return true;
    if (kiln_trainer_validates(trainer) &&
        kiln_metrics_declared(trainer->metrics, KILN_PHASE_VALIDATE, name))
        return true;
    size_t i;
    return logged_by(trainer, name, &i) != NULL;
}

enum { LISTED = 64 };

/* Add a metric to the list, once, if the run logs it: several phases may log a name. */
static void add_logged(const KilnTrainer *trainer, const char *name, const char *ret[LISTED + 1],
                       size_t *n)
{
    if (*n == LISTED || !kiln_trainer_logs(trainer, name) || is_in(ret, name))
        return;
    ret[(*n)++] = name;
    ret[*n] = NULL;
}

/* The first LISTED metrics that the run logs, and NULL. Returns their number. */
static size_t list_logged(const KilnTrainer *trainer, const char *ret[LISTED + 1])
{
    const char *name;
    size_t n = 0;

    ret[0] = NULL;
    for (size_t i = 0; (name = kiln_metrics_declared_at(trainer->metrics, i)) != NULL; i++)
        add_logged(trainer, name, ret, &n);
    for (size_t k = 0; k < trainer->hooks.n_all; k++)
        for (const char *const *logs = trainer->hooks.all[k].ops->logs;
             logs != NULL && *logs != NULL; logs++)
            add_logged(trainer, *logs, ret, &n);
    return n;
}

KilnStatus kiln_trainer_unknown_metric(const KilnTrainer *trainer, const char *option,
                                       const char *name, KilnError *err)
{
    const char *names[LISTED + 1];
    const size_t n = list_logged(trainer, names);
    KilnText list = { 0 };

    for (size_t i = 0; i < n; i++)
        kiln_text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    const char *nearest = name != NULL ? kiln_nearest(name, names, n) : NULL;
    kiln_error_set(err, KILN_E_KEY, "%s=%s: %s%s%s%s; it logs: %s%s", option,
                   name != NULL ? name : "null",
                   name != NULL ? "this run logs no such metric" : "expected a metric",
                   nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "?" : "", n > 0 && list.data != NULL ? list.data : "nothing",
                   kiln_trainer_validates(trainer)
                       ? ""
                       : " (there is no validation: no samples, or limit_val_batches=0)");
    kiln_text_release(&list);
    return KILN_E_KEY;
}

/* A metric to monitor instead of `name`: the nearest, else one of validation that declares which
 * values are better. NULL: none. */
static const char *suggest_metric(const KilnTrainer *trainer, const char *name)
{
    const char *names[LISTED + 1];
    const size_t n_logged = list_logged(trainer, names);
    size_t n = 0;

    for (size_t i = 0; i < n_logged; i++)
        if (kiln_metrics_declared(trainer->metrics, KILN_PHASE_VALIDATE, names[i]) &&
            declared_mode(trainer, names[i]) != KILN_MODE_AUTO)
            names[n++] = names[i];
    const char *nearest = name != NULL ? kiln_nearest(name, names, n) : NULL;
    return nearest != NULL ? nearest : n > 0 ? names[0] : NULL;
}

/* Where the config writes the option `key`: that option, or the one that an interpolation there
 * leads to, such as task.monitor. */
static const char *written_at(const KilnTrainer *trainer, const char *key, KilnError *about)
{
    const KilnConfigNode *written = kiln_node_find(kiln_config_root(trainer->config), key);
    const KilnConfigNode *value = NULL;

    if (kiln_config_at(trainer->config, key, &value, NULL) < 0 || value == NULL)
        return key;
    (void)kiln_error_about(trainer->config, written != NULL ? written : value, value, about);
    const char *path = kiln_node_path(trainer->config, value);
    return path != NULL && path[0] != '\0' ? path : key;
}

KilnStatus kiln_trainer_unknown_monitor(const KilnTrainer *trainer, const KilnInstance *component,
                                        const char *name, KilnError *err)
{
    const char *suggestion = suggest_metric(trainer, name);
    KilnError why = { 0 }, about = { 0 };
    KilnText key = { 0 };

    kiln_text_printf(&key, "%s.monitor", kiln_instance_path(component));
    if (key.failed)
        return kiln_error_nomem(err, 64);
    const char *option = written_at(trainer, key.data, &about);
    (void)kiln_trainer_unknown_metric(trainer, option, name, &why);
    kiln_error_set(err, KILN_E_KEY, "%s%s", why.text, about.text);
    if (suggestion != NULL)
        kiln_error_set(err, KILN_E_KEY, "%s%s\n  try %s=%s", why.text, about.text, option,
                       suggestion);
    kiln_text_release(&key);
    return kiln_error_at(err, &about.origin);
}

KilnStatus kiln_trainer_mode(const KilnTrainer *trainer, const KilnInstance *component,
                             const char *name, int64_t mode, bool *ret_higher_is_better,
                             KilnError *err)
{
    const KilnMode declared = declared_mode(trainer, name);
    const char *path = kiln_instance_path(component);

    if (mode == KILN_MODE_AUTO && declared == KILN_MODE_AUTO)
        return kiln_error_set(err, KILN_E_RANGE,
                              "monitor=%s mode=auto: %s does not declare whether a larger or a "
                              "smaller value is better; write %s.mode=max or %s.mode=min",
                              name, name, path, path);
    if (mode != KILN_MODE_AUTO && declared != KILN_MODE_AUTO && mode != (int64_t)declared)
        return kiln_error_set(err, KILN_E_RANGE,
                              "monitor=%s mode=%s: %s gets better as it %s; write %s.mode=%s, or "
                              "leave mode out",
                              name, kiln_modes[mode].name, name,
                              declared == KILN_MODE_MAX ? "rises" : "falls", path,
                              kiln_modes[declared].name);
    *ret_higher_is_better = (mode == KILN_MODE_AUTO ? (int64_t)declared : mode) == KILN_MODE_MAX;
    return KILN_OK;
}
