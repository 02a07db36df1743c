/* What to change in the next sweep: intervals whose best values are at an end, and parameters that
 * hardly matter. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"
#include "kiln/search/history.h"
#include "sweep/report/sweep_report.h"

enum { BEST = 3, LEAST_JOBS = 6 };
static const double lucky = 0.1; /* the importance of a seed from which on it is reported */

typedef enum End { END_NONE, END_LOW, END_HIGH } End;

bool kiln_sweep_report_is_seed(const KilnParameter *parameter)
{
    return kiln_ends_with(parameter->key, "seed");
}

static KilnStatus add(KilnSweepReport *report, KilnSuggestionKind kind, size_t parameter,
                      KilnText *text, KilnError *err)
{
    const char *kept = kiln_text_to_arena(text, &report->arena);

    if (kept == NULL ||
        !KILN_ARENA_RESERVE(&report->arena, report->suggestions, report->suggestions_capacity,
                            report->n_suggestions + 1))
        return kiln_error_nomem(err, 1);
    report->suggestions[report->n_suggestions++] =
        (KilnReportSuggestion) { .kind = kind, .parameter = parameter, .text = kept };
    return KILN_OK;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* The part of an interval that counts as its end: a tenth, or of few jobs what four of them share.
 */
static double edge_of(const KilnSweepReport *report)
{
    return fmin(fmax(4.0 / (double)report->n_points, 0.1), 0.2);
}

/* The end at which a point is. */
static End end_of(const KilnSweepReport *report, size_t point, size_t parameter)
{
    const KilnParameter *of = &report->parameters[parameter];
    const KilnAxis *axis = report->space.axes[of->axis];
    const KilnAxisValue value = report->points[point].value[of->axis];

    if (!kiln_axis_is_active(&report->space, of->axis, report->points[point].value))
        return END_NONE;
    if (of->n_values > 0) {
        const size_t place = of->place[value.index];

        return place == 0 ? END_LOW : place + 1 == of->n_values ? END_HIGH : END_NONE;
    }
    const double share = kiln_axis_share(axis, value);
    if (value.number == axis->low || share < edge_of(report))
        return END_LOW;
    return value.number == axis->high || share >= 1.0 - edge_of(report) ? END_HIGH : END_NONE;
}

static bool find_point(const KilnSweepReport *report, size_t job, size_t *ret)
{
    for (size_t i = 0; i < report->n_points; i++)
        if (report->points[i].job == job) {
            *ret = i;
            return true;
        }
    return false;
}

/* The end at which all of the best jobs are. */
static End common_end(const KilnSweepReport *report, size_t parameter)
{
    End end = END_NONE;

    for (size_t i = 0; i < BEST; i++) {
        size_t point;

        if (!find_point(report, report->ranked[i], &point))
            return END_NONE;
        const End this_end = end_of(report, point, parameter);
        if (this_end == END_NONE || (i > 0 && this_end != end))
            return END_NONE;
        end = this_end;
    }
    return end;
}

/* Is it known not to matter? */
static bool is_unimportant(const KilnSweepReport *report, size_t parameter)
{
    const KilnParameter *of = &report->parameters[parameter];

    return report->fanova.explained >= KILN_REPORT_TRUSTED && of->tried > 1 &&
           of->with_pairs < KILN_REPORT_UNIMPORTANT;
}

/* Can the parameter have values beyond its end? */
static bool can_widen(const KilnSweepReport *report, size_t parameter)
{
    const KilnParameter *of = &report->parameters[parameter];

    return of->ordered && (of->n_values == 0 || (of->numbers != NULL && of->n_values > 2)) &&
           !kiln_sweep_report_is_seed(of) && !is_unimportant(report, parameter);
}

/* ---- The next values ------------------------------------------------------------------------- */

/* The next number of a list, by the last factor or step; false: there is none on that side. */
static bool next_number(const KilnParameter *parameter, End end, double *ret)
{
    const size_t n = parameter->n_values;
    const double last = parameter->numbers[end == END_HIGH ? n - 1 : 0];
    const double before = parameter->numbers[end == END_HIGH ? n - 2 : 1];
    bool whole = true;

    *ret = parameter->log ? last * (last / before) : last + (last - before);
    if (!parameter->log && last > 0.0 && *ret <= 0.0)
        *ret = last / 2.0; /* most numbers that are positive have to be */
    for (size_t i = 0; i < n; i++) {
        int64_t number;

        whole = whole && kiln_parse_i64(parameter->texts[i], &number, NULL) >= 0;
    }
    if (whole)
        *ret = rint(*ret);
    return end == END_HIGH ? *ret > last : *ret < last && !(last >= 0.0 && *ret < 0.0);
}

/* The interval with an end further out; false: 0 is the natural end. */
static bool next_interval(const KilnAxis *axis, End end, double *ret_low, double *ret_high)
{
    const double width = axis->high - axis->low;

    *ret_low = axis->low;
    *ret_high = axis->high;
    if (end == END_HIGH)
        *ret_high = axis->log ? axis->high * 10.0 : axis->high + width / 2.0;
    else if (axis->log)
        *ret_low = axis->low / 10.0;
    else if (axis->low < 0.0)
        *ret_low = axis->low - width / 2.0;
    else
        *ret_low = fmax(axis->low - width / 2.0, 0.0);
    if (axis->kind == KILN_AXIS_INT) {
        *ret_low = end == END_LOW && axis->low >= 1.0 ? fmax(floor(*ret_low), 1.0)
                                                      : floor(*ret_low);
        *ret_high = ceil(*ret_high);
    }
    return *ret_low < axis->low || *ret_high > axis->high;
}

static void put_interval(KilnText *text, const KilnAxis *axis, double low, double high)
{
    const bool whole = axis->kind == KILN_AXIS_INT;

    kiln_text_printf(text, "%s=%s%sinterval(%.6g,%.6g)%s%s", axis->key, axis->log ? "tag(log," : "",
                     whole ? "int(" : "", low, high, whole ? ")" : "", axis->log ? ")" : "");
}

/* Old jobs of a list keep their results: only the new value runs. */
static KilnStatus add_value_command(KilnSweepReport *report, const KilnParameter *parameter,
                                    double number, KilnError *err)
{
    const KilnAxis *axis = report->space.axes[parameter->axis];
    KilnText line = { 0 }, word = { 0 };

    kiln_text_printf(&word, "%s=", axis->key);
    for (size_t i = 0; i < axis->count; i++)
        kiln_text_printf(&word, "%s,", parameter->texts[parameter->place[i]]);
    kiln_text_printf(&word, "%.6g", number);
    kiln_text_append(&line, "train -m --resume ");
    kiln_text_shell_word(&line, report->sweep.dir);
    kiln_text_char(&line, ' ');
    kiln_text_shell_word(&line, word.data != NULL ? word.data : "");
    line.failed = line.failed || word.failed;
    kiln_text_release(&word);
    return kiln_sweep_report_add_command(report, &line, "also a value beyond the end", err);
}

static bool sets(const char *argument, const char *key)
{
    const size_t n = strlen(key);

    return strncmp(argument, key, n) == 0 && argument[n] == '=';
}

/* A new sweep, with the arguments of this one and the wider interval. */
static KilnStatus add_interval_command(KilnSweepReport *report, const KilnAxis *axis, double low,
                                       double high, KilnError *err)
{
    const char *const *argument = report->sweep.start.arguments;
    KilnText line = { 0 }, word = { 0 };
    bool replaced = false;

    put_interval(&word, axis, low, high);
    kiln_sweep_report_put_train(report, &line);
    kiln_text_append(&line, " -m");
    for (; *argument != NULL; argument++) {
        const bool this_one = sets(*argument, axis->key);

        if (sets(*argument, "kiln.sweep.dir"))
            continue;
        kiln_text_char(&line, ' ');
        kiln_text_shell_word(&line, this_one && word.data != NULL ? word.data : *argument);
        replaced |= this_one;
    }
    if (!replaced) { /* it is one of kiln.sweeper.params, which an argument replaces */
        kiln_text_char(&line, ' ');
        kiln_text_shell_word(&line, word.data != NULL ? word.data : "");
    }
    line.failed = line.failed || word.failed;
    kiln_text_release(&word);
    return kiln_sweep_report_add_command(report, &line, "a new sweep with the wider interval", err);
}

/* ---- Suggestions ------------------------------------------------------------------------------
 */

/* Does it vary with others, or on a condition? Then its argument is not a list alone. */
static bool is_plain(const KilnSweepReport *report, size_t axis)
{
    for (size_t i = 0; i < report->space.count; i++)
        if (i != axis && report->space.axes[i]->leader == axis)
            return false;
    return report->space.axes[axis]->active_for == NULL;
}

static void put_widen(KilnText *text, const KilnSweepReport *report, size_t parameter, End end)
{
    const KilnParameter *of = &report->parameters[parameter];
    const KilnAxis *axis = report->space.axes[of->axis];
    char number[KILN_F64_TEXT];

    kiln_text_printf(text, "the best %d of %zu jobs are at the %s end, ", (int)BEST,
                     report->n_points, end == END_HIGH ? "upper" : "lower");
    if (of->n_values > 0)
        kiln_text_printf(text, "%s; add %s values",
                         of->texts[end == END_HIGH ? of->n_values - 1 : 0],
                         end == END_HIGH ? "larger" : "smaller");
    else if (axis->kind == KILN_AXIS_INT)
        kiln_text_printf(text, "%lld; widen the interval",
                         (long long)(end == END_HIGH ? axis->high : axis->low));
    else
        kiln_text_printf(
            text, "%s; widen the interval",
            kiln_format_f64(end == END_HIGH ? axis->high : axis->low, number, sizeof(number)));
}

static KilnStatus suggest_widen(KilnSweepReport *report, size_t parameter, KilnError *err)
{
    const KilnParameter *of = &report->parameters[parameter];
    const KilnAxis *axis = report->space.axes[of->axis];
    const End end = can_widen(report, parameter) ? common_end(report, parameter) : END_NONE;
    double number = 0.0, low = 0.0, high = 0.0;
    KilnText text = { 0 };

    if (end == END_NONE || (of->n_values > 0 ? !next_number(of, end, &number)
                                             : !next_interval(axis, end, &low, &high)))
        return KILN_OK;
    put_widen(&text, report, parameter, end);
    KilnStatus status = add(report, KILN_SUGGEST_WIDEN, parameter, &text, err);
    if (status < 0 || !is_plain(report, of->axis))
        return status;
    return of->n_values > 0 ? add_value_command(report, of, number, err)
                            : add_interval_command(report, axis, low, high, err);
}

static KilnStatus suggest_by_importance(KilnSweepReport *report, size_t parameter, KilnError *err)
{
    const KilnParameter *of = &report->parameters[parameter];
    const bool seed = kiln_sweep_report_is_seed(of);
    KilnText text = { 0 };

    if (seed && report->fanova.explained >= KILN_REPORT_TRUSTED && of->with_pairs >= lucky) {
        kiln_text_printf(&text,
                         "it explains %.2g of the variance: differences between jobs are partly "
                         "luck; compare configs over several seeds",
                         of->with_pairs);
        return add(report, KILN_SUGGEST_SEEDS, parameter, &text, err);
    }
    if (seed || !is_unimportant(report, parameter))
        return KILN_OK;
    kiln_text_printf(&text,
                     "it hardly matters (%.2g of the variance, with its interactions); fix it, and "
                     "search fewer parameters",
                     of->with_pairs);
    return add(report, KILN_SUGGEST_FIX, parameter, &text, err);
}

KilnStatus kiln_sweep_report_suggest(KilnSweepReport *report, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < report->n_parameters && status >= 0; i++)
        if (report->n_points >= LEAST_JOBS)
            status = suggest_widen(report, i, err);
    for (size_t i = 0; i < report->n_parameters && status >= 0; i++)
        status = suggest_by_importance(report, i, err);
    return status;
}
