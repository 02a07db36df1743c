/* Checks gradients: of a model, task or loss in a training step, against finite differences. */
#include <math.h>
#include <stdlib.h>

#include "cli/checks/checks.h"
#include "train/analysis/gradient_check.h"
#include "train/assemble.h"
#include "train/trainer.h"

static const double long_enough = 15.0; /* seconds; large networks are checked in part */
/* Between the losses of a batch in f32 and f64, relative. */
static const double most_loss = 1e-2;
/* Relative errors that pass in f64 and f32. */
static const double most_error[2] = { 1e-3, 0.15 };

/* `seconds` 0: the loss alone. */
static KilnStatus check(KilnCase *self, const char *precision, double seconds,
                        KilnGradientCheck *ret, KilnError *err)
{
    const char *const more[] = { precision, "batch_size=4", "test=false", NULL };
    const KilnRunEnv env = { .registry = self->registry, .stop = self->request->stop };
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    KilnConfig *config = NULL;

    if (trainer == NULL)
        return kiln_error_nomem(err, sizeof(*trainer));
    KilnStatus status = kiln_case_compose(self, more, &config, err);
    trainer->no_callbacks = true;
    if (status >= 0)
        status = kiln_trainer_assemble(trainer, config, &env, KILN_STAGE_FIT, NULL, err);
    if (status >= 0)
        status = kiln_trainer_check_gradients(trainer, seconds, ret, err);
    if (status >= 0 && ret->param != NULL)
        ret->param = kiln_arena_strdup(&self->arena, ret->param);
    kiln_trainer_release(trainer);
    free(trainer);
    kiln_config_free(config);
    return status;
}

/* Only sums and rounding differ between the precisions, unless a kernel is wrong in f32. */
static void compare_losses(KilnCase *self, double f64)
{
    KilnGradientCheck f32;
    KilnError err = { 0 };

    if (check(self, "trainer.precision=32-true", 0.0, &f32, &err) < 0)
        kiln_case_fail_with(self, &err);
    else if (!(fabs(f32.loss - f64) <= most_loss * fmax(1.0, fabs(f64))))
        kiln_case_fail(self, "compare the f32 kernels of its operations (`cpu`) with `cpu_f64`",
                       "the loss of a batch is %.6g in f32 and %.6g in f64", f32.loss, f64);
}

void kiln_contract_gradients(KilnCase *self)
{
    KilnGradientCheck found;
    KilnError err = { 0 }, why = { 0 };
    const bool is_f64 = check(self, "trainer.precision=64-true", long_enough, &found, &why) >= 0;

    if (!is_f64 && check(self, "trainer.precision=32-true", long_enough, &found, &err) < 0)
        return kiln_case_fail_with(self, &err);
    if (found.checked == 0)
        return kiln_case_skip(self, "", "its steps have no gradients of one loss");
    if (!(found.error <= most_error[!is_f64]))
        return kiln_case_fail(
            self,
            "check the `gradient` of its operations, kiln_detach, and values that "
            "are read outside of the graph",
            "the loss changes by %.6g along %s, its gradient says %.6g", found.difference,
            found.param, found.gradient);
    if (is_f64) {
        compare_losses(self, found.loss);
        kiln_case_pass(self, "%zu parameters in f64, off by at most %.1g", found.checked,
                       found.error);
    } else {
        kiln_case_pass(self, "%zu parameters, off by at most %.1g in f32 (%s)", found.checked,
                       found.error, why.text);
    }
}
