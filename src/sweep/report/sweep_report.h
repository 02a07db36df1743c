/* The report of a sweep, finished or running: its best jobs, which parameters matter, and what to
 * run next. It is read from the sweep's folder alone, without the lock of its journal. */
#ifndef KILN_SWEEP_REPORT_SWEEP_REPORT_H
#define KILN_SWEEP_REPORT_SWEEP_REPORT_H

#include "sweep/report/fanova.h"
#include "sweep/sweep_state.h"

/* Jobs with a value below which an importance would be a guess. */
enum { KILN_REPORT_IMPORTANCE_JOBS = 8 };
/* A parameter whose share of the variance, alone and in pairs, is below this hardly matters. */
#define KILN_REPORT_UNIMPORTANT 0.02
/* Below this share of the variance that the model explains of unseen jobs, shares are rough. */
#define KILN_REPORT_TRUSTED 0.3
/* An interaction from this share of the variance on is strong. */
#define KILN_REPORT_STRONG 0.05

/* A parameter: an axis that varies, with those that vary together with it by zip(). */
typedef struct KilnParameter {
    const char *key;    /* "lr", without + */
    const char *label;  /* the same, with the keys of zip(), and its condition where another
                         * parameter has the key, too */
    size_t axis;        /* in the space */
    bool ordered;       /* its values are numbers, or too many to be categories */
    bool log;           /* they differ by factors */
    size_t n_values;    /* of a list of values; 0: an interval */
    const char **texts; /* of the list: after "=", numbers in ascending order */
    double *numbers;    /* of a list of numbers, ascending; NULL: of another one */
    size_t *place;      /* the index in texts, by the axis's index */
    double inactive;    /* the share of the space in which a condition leaves it out */
    size_t tried;       /* different values in jobs that have a value */
    double importance;  /* its main effect; NaN: too few jobs */
    double with_pairs;  /* and of all pairs that it is in */
} KilnParameter;

/* A pair of parameters with a strong interaction. */
typedef struct KilnInteraction {
    size_t first, second; /* parameters */
    double importance;
} KilnInteraction;

typedef enum KilnSuggestionKind {
    KILN_SUGGEST_WIDEN, /* the best values are at an end */
    KILN_SUGGEST_FIX,   /* the parameter hardly matters */
    KILN_SUGGEST_SEEDS  /* a seed matters: differences are partly luck */
} KilnSuggestionKind;

typedef struct KilnReportSuggestion {
    KilnSuggestionKind kind;
    size_t parameter;
    const char *text; /* without the parameter's name */
} KilnReportSuggestion;

/* A command line to run next. */
typedef struct KilnReportCommand {
    const char *line, *purpose;
} KilnReportCommand;

/* A job with a value, as a point of the space. */
typedef struct KilnReportPoint {
    size_t job;
    const KilnAxisValue *value; /* by axis */
} KilnReportPoint;

/* Everything lives in the arena, and in sweep.jobs. */
typedef struct KilnSweepReport {
    KilnArena arena;
    KilnSweep sweep; /* what its journal says: jobs, start, dir, path, metric. The rest is unset. */
    KilnMode mode;   /* of the metric: MIN or MAX */
    KilnSpace space;
    size_t ok, stopped, failed, forbidden, running,
        waiting;                            /* jobs; waiting: also interrupted ones */
    double seconds;                         /* of all jobs together */
    size_t *ranked, n_ranked;               /* numbers of jobs, the best first */
    KilnConfigNode *best_config, *best_own; /* of the best job: .kiln/job.yaml and kiln.yaml; NULL:
                                             * they can't be read */
    KilnParameter *parameters;
    size_t n_parameters;
    KilnReportPoint *points; /* jobs with a value that are points of the space, by number */
    size_t n_points;
    KilnFanova fanova;             /* of the points; its lists are NULL: too few */
    KilnInteraction *interactions; /* the strong ones, the strongest first */
    size_t n_interactions;
    KilnReportSuggestion *suggestions;
    size_t n_suggestions, suggestions_capacity;
    KilnReportCommand *commands;
    size_t n_commands, commands_capacity;
} KilnSweepReport;

/* Read the sweep of a folder (an absolute path) and analyse it. Release it also after an error.
 * KILN_E_MISSING: no job has a value yet. KILN_E_FORMAT: the journal is damaged. */
KILN_NODISCARD KilnStatus kiln_sweep_report_open(const char *dir, KilnSweepReport *report,
                                                 KilnError *err);
void kiln_sweep_report_release(KilnSweepReport *report);
/* The value by which a job is ranked; NaN: none. */
double kiln_sweep_report_value(const KilnSweepReport *report, size_t job);
/* The same as a loss, of which less is better. */
double kiln_sweep_report_loss(const KilnSweepReport *report, size_t job);
/* The value of a parameter at a point: a number of an interval, or the index in its texts; NaN:
 * inactive. */
double kiln_sweep_report_number(const KilnSweepReport *report, size_t point, size_t parameter);
/* The same as text; NULL: inactive. */
const char *kiln_sweep_report_text(const KilnSweepReport *report, size_t job, size_t parameter);
/* The parameters, the most important ones first; in the order of the space without importance.
 * `ret` has room for all. */
void kiln_sweep_report_order(const KilnSweepReport *report, size_t *ret);
/* Append the words of a train command that uses the sweep's config: "train -cn other". */
void kiln_sweep_report_put_train(const KilnSweepReport *report, KilnText *text);
/* Append the override that selects an experiment: "experiment=best". */
void kiln_sweep_report_put_experiment(const KilnSweepReport *report, const char *name,
                                      KilnText *text);

/* ---- Files ---------------------------------------------------------------------------- */

/* report.json; owned by the caller. */
KILN_NODISCARD KilnStatus kiln_sweep_report_json(const KilnSweepReport *report, char **ret,
                                                 KilnError *err);
/* Write report.json and importance.csv to the folder report/ of the sweep. */
KILN_NODISCARD KilnStatus kiln_sweep_report_write(const KilnSweepReport *report, KilnError *err);
/* Write the pictures there. KILN_E_MISSING: this build has no pictures. */
KILN_NODISCARD KilnStatus kiln_sweep_report_draw(const KilnSweepReport *report, KilnError *err);
/* The best job's config as a file of the group experiment/, to be selected as `name`; owned by the
 * caller. */
KILN_NODISCARD KilnStatus kiln_sweep_report_best_config(const KilnSweepReport *report,
                                                        const char *name, char **ret,
                                                        KilnError *err);
/* The path of a file in the folder report/; owned by the caller. NULL: memory is out. */
char *kiln_sweep_report_path(const KilnSweepReport *report, const char *name);

/* ---- For the files of this folder --------------------------------------------------------- */

/* read_sweep.c: set sweep, mode, space and the counts. */
KILN_NODISCARD KilnStatus kiln_sweep_report_read(const char *dir, KilnSweepReport *report,
                                                 KilnError *err);
/* read_space.c: the space of a record. KILN_E_FORMAT if it is damaged. */
KILN_NODISCARD KilnStatus kiln_space_read(const json_t *axes, KilnArena *arena, KilnSpace *ret,
                                          KilnError *err);
/* parameters.c: set parameters and points. */
KILN_NODISCARD KilnStatus kiln_sweep_report_find_parameters(KilnSweepReport *report,
                                                            KilnError *err);
/* Set fanova, interactions, and the importance of the parameters. */
KILN_NODISCARD KilnStatus kiln_sweep_report_find_importance(KilnSweepReport *report,
                                                            KilnError *err);
/* suggestions.c: set suggestions, and add the commands that follow from them. */
KILN_NODISCARD KilnStatus kiln_sweep_report_suggest(KilnSweepReport *report, KilnError *err);
/* next_commands.c: add the other commands. */
KILN_NODISCARD KilnStatus kiln_sweep_report_find_commands(KilnSweepReport *report, KilnError *err);
/* Add a command; takes the text of its line. */
KILN_NODISCARD KilnStatus kiln_sweep_report_add_command(KilnSweepReport *report, KilnText *line,
                                                        const char *purpose, KilnError *err);
/* lineage.c: append the node `kiln` of a config that trains the weights of a job, which began with
 * those of another one, from the beginning. */
KILN_NODISCARD KilnStatus kiln_sweep_report_put_schedule(const KilnSweepReport *report,
                                                         size_t number, KilnArena *arena,
                                                         KilnText *text, KilnError *err);
/* Is it a seed, whose values have no order that matters? */
bool kiln_sweep_report_is_seed(const KilnParameter *parameter);

#endif
