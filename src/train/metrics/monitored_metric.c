/* Metrics that components monitor, by an option such as monitor=val/loss: whether the run logs
 * them, and which values are better. Declared in kiln/trainer.h. */
#include <string.h>

#include "base/text.h"
#include "config/provenance/error_origin.h"
#include "schema/bind.h"
#include "train/trainer.h"

static bool is_in(const char *const *logs, const char *name)
{
    for (size_t i = 0; logs != NULL && logs[i] != NULL; i++)
        if (strcmp(logs[i], name) == 0)
            return true;
    return false;
}

bool kiln_trainer_logs(const KilnTrainer *trainer, const char *name)
{
    if (kiln_metrics_declared(trainer->metrics, KILN_PHASE_FIT, name))
        return true;
    if (kiln_trainer_validates(trainer) &&
        kiln_metrics_declared(trainer->metrics, KILN_PHASE_VALIDATE, name))
        return true;
    for (size_t i = 0; i < trainer->hooks.n_all; i++)
        if (is_in(trainer->hooks.all[i].ops->logs, name))
            return true;
    return false;
}

enum { LISTED = 64 };

/* The first LISTED metrics that the run logs, each once though several phases may log it, and NULL.
 * Returns their number. */
static size_t list_logged(const KilnTrainer *trainer, const char *ret[LISTED + 1])
{
    const char *name;
    size_t n = 0;

    ret[0] = NULL;
    for (size_t i = 0; (name = kiln_metrics_declared_at(trainer->metrics, i)) != NULL; i++)
        if (n < LISTED && kiln_trainer_logs(trainer, name) && !is_in(ret, name)) {
            ret[n++] = name;
            ret[n] = NULL;
        }
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
            kiln_metrics_mode(trainer->metrics, names[i]) != KILN_MODE_AUTO)
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
    const KilnMode declared = kiln_metrics_mode(trainer->metrics, name);
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
