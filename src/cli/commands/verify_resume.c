/* kiln verify-resume: kills and resumes runs, and compares their checkpoints and logs with those of
 * an undisturbed run (cli/verify/differences.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/help/selection.h"
#include "cli/screen/screen.h"
#include "cli/verify/differences.h"
#include "kiln/rng.h"
#include "kiln/embed/run.h"
#include "kiln/tools/clock.h"
#include "train/report/live_page.h"
#include "train/run/run_options.h"

enum {
    KILLS = 20,      /* unless -n is given */
    TRIES = 8,       /* to hit a kill point before the run ends */
    MOST_KILLS = 4,  /* of one run */
    SEED = 20261122, /* of the kill points */
    SHOWN = 10,      /* differences */
};
static const double poll_s = 2e-4;  /* between two polls of a run */
static const double patience = 50.; /* a run hangs after so many times the undisturbed run's time */

typedef enum Point {
    KILL_ANY,        /* uniform over the time of the run */
    KILL_EPOCH,      /* in an epoch of training */
    KILL_VALIDATION, /* while it validates */
    KILL_SAVING,     /* while a checkpoint is written */
    KILL_GROUP,      /* between the batches of one optimizer step */
    KILL_FIRST,      /* before the first checkpoint */
    KILL_TEST,       /* in the final test */
    KILL_AGAIN,      /* anywhere, and again while it is resumed */
    POINTS
} Point;

static const char *const point_names[POINTS] = {
    [KILL_ANY] = "at any time",
    [KILL_EPOCH] = "in an epoch",
    [KILL_VALIDATION] = "in validation",
    [KILL_SAVING] = "while saving",
    [KILL_GROUP] = "in a group of batches",
    [KILL_FIRST] = "before a checkpoint",
    [KILL_TEST] = "in the final test",
    [KILL_AGAIN] = "again when resumed",
};

typedef struct Verdict {
    bool reached; /* by the undisturbed run */
    int64_t kills, equal, differ, failed, missed;
} Verdict;

typedef struct Check {
    const KilnArgs *args;
    const char **command; /* `train FLAGS`, with room for words; owned */
    size_t n_flags;
    char folder[64], run[96], undisturbed[96], log[96];
    double seconds, saved; /* of the undisturbed run, and until its first checkpoint */
    int64_t steps;         /* of it */
    Verdict by[POINTS];
    int64_t wanted, done;
    double began;
    KilnConsole console;
    const volatile int *stop;
    KilnText failures;
} Check;

/* ---- Kill points ------------------------------------------------------------------------ */

/* Draw the seconds after which a run is killed when it is at the point. */
static double draw_time(const Check *check, Point point, KilnRng *rng)
{
    const bool first = point == KILL_FIRST && check->saved > 0.0;

    return (double)kiln_rng_uniform(rng) * (first ? check->saved : check->seconds);
}

/* `live` is the live status of the run; NULL: none yet. */
static bool is_at(Point point, const KilnLiveSnapshot *live)
{
    if (point == KILL_ANY || point == KILL_AGAIN || point == KILL_FIRST)
        return true;
    if (live == NULL)
        return false;
    switch (point) {
    case KILL_VALIDATION:
        return live->at.phase == KILN_LIVE_VALIDATE;
    case KILL_SAVING:
        return live->saving > 0;
    case KILL_GROUP:
        return live->at.phase == KILN_LIVE_FIT && live->at.in_group > 0;
    case KILL_TEST:
        return live->at.phase == KILN_LIVE_TEST;
    default:
        return live->at.phase == KILN_LIVE_FIT;
    }
}

/* Record the live status of the undisturbed run. */
static void note_status(Check *check, double seconds, const KilnLiveSnapshot *live)
{
    for (int i = 0; i < POINTS; i++)
        check->by[i].reached |= is_at((Point)i, live);
    if (check->saved <= 0.0 && live->saving > 0)
        check->saved = seconds;
    if (live->at.step > check->steps)
        check->steps = live->at.step;
}

/* ---- A run ------------------------------------------------------------------------------ */

static void add_flags(Check *check, const char *flag, const char *const *values)
{
    for (; *values != NULL; values++) {
        check->command[check->n_flags++] = flag;
        check->command[check->n_flags++] = *values;
    }
}

static KilnStatus make_command(Check *check, KilnError *err)
{
    const KilnArgs *args = check->args;
    const size_t room = args->n_words + 4 * KILN_MAX_REPEATED + 8;

    if ((check->command = calloc(room, sizeof(*check->command))) == NULL)
        return kiln_error_nomem(err, room * sizeof(*check->command));
    check->command[check->n_flags++] = "train";
    add_flags(check, "--plugin", args->plugins);
    add_flags(check, "--config-dir", args->config_dirs);
    add_flags(check, "--config-path", (const char *const[]) { args->config_path, NULL });
    add_flags(check, "--config-name", (const char *const[]) { args->config_name, NULL });
    return KILN_OK;
}

/* Start a run in a child process: `train FLAGS WORDS kiln.run.dir=RUN`, or `train FLAGS
 * resume=RUN`. Its output goes to the log. */
static pid_t start(const Check *check, bool resumes)
{
    const char **word = check->command + check->n_flags;
    char last[128];
    const pid_t child = fork();

    if (child != 0)
        return child;
    for (size_t i = 0; i < check->args->n_words && !resumes; i++)
        *word++ = check->args->words[i];
    snprintf(last, sizeof(last), "%s=%s", resumes ? "resume" : "kiln.run.dir", check->run);
    *word = last;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(check->log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    const int nothing = open("/dev/null", O_RDONLY);
    if (log >= 0 && nothing >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0 && dup2(nothing, 0) >= 0)
        execv("/proc/self/exe", (char *const *)check->command);
    _exit(127);
}

/* How a run ended. */
typedef enum End { END_WELL, END_KILLED, END_FAILED, END_HUNG, END_STOPPED } End;

/* Start or resume a run, wait for its end, and kill it at a point, `after` seconds at the earliest
 * (INFINITY: never). */
static End run(Check *check, bool resumes, Point point, double after)
{
    const struct timespec pause = { .tv_nsec = (long)(1e9 * poll_s) };
    const bool undisturbed = check->seconds <= 0.0;
    const double longest = undisturbed ? INFINITY : patience * check->seconds + 60.0;
    const double began = kiln_clock();
    const pid_t child = start(check, resumes);
    int status = -1;
    KilnLiveSnapshot live;

    for (;;) {
        const double seconds = kiln_clock() - began;
        const bool is_live = kiln_live_page_read(check->run, &live, NULL) >= 0 &&
                             live.run.pid == child;

        if (child < 0 || waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? END_WELL : END_FAILED;
        if (is_live && undisturbed)
            note_status(check, seconds, &live);
        const bool reached = seconds >= after && is_at(point, is_live ? &live : NULL);
        if (reached || seconds > longest || *check->stop != 0) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return *check->stop != 0 ? END_STOPPED : reached ? END_KILLED : END_HUNG;
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- One kill ------------------------------------------------------------------------------ */

static void note_failure(Check *check, Point point, const char *what, const char *detail)
{
    kiln_text_printf(&check->failures, "kill %lld, %s: %s\n%s", (long long)check->done + 1,
                     point_names[point], what, detail);
}

/* The end of the runs' output, owned by the caller. */
static char *end_of_log(const Check *check)
{
    enum { TAIL = 600 };
    char *text = NULL;
    size_t size = 0;

    if (kiln_file_read(check->log, (size_t)1 << 26, &text, &size, NULL) < 0)
        return kiln_strdup("");
    if (size > TAIL)
        memmove(text, text + size - TAIL, TAIL + 1);
    return text;
}

/* Start a run and kill it at a kill point. Tries again earlier when the run ends first. */
static End kill_once(Check *check, Point point, KilnRng *rng, KilnError *err)
{
    double after = draw_time(check, point, rng);
    End end = END_WELL;

    for (int i = 0; i < TRIES && end == END_WELL; i++, after *= 0.7) {
        if (kiln_path_remove(check->run, err) < 0 || kiln_path_remove(check->log, err) < 0)
            return END_FAILED;
        end = run(check, false, point, after);
    }
    return end;
}

/* Resume the run until it ends, with more kills for KILL_AGAIN. A run that was killed before it had
 * a config is started again. */
static End resume(Check *check, Point point, int *kills, KilnRng *rng)
{
    char config[128];
    End end = END_KILLED;

    snprintf(config, sizeof(config), "%s/.kiln/config.yaml", check->run);
    while (end == END_KILLED) {
        const double after = draw_time(check, KILL_ANY, rng);
        const bool again = point == KILL_AGAIN && *kills < MOST_KILLS;

        end = run(check, kiln_is_file(config), KILL_ANY, again ? after : (double)INFINITY);
        *kills += end == END_KILLED;
    }
    return end;
}

/* Compare the resumed run with the undisturbed one. */
static KilnStatus compare(Check *check, Point point, bool *ret_equal, KilnError *err)
{
    KilnDifferences found = { .most = SHOWN, .sides = { "undisturbed run", "resumed run" } };
    KilnStatus status = kiln_differences_runs(check->undisturbed, check->run, &found, err);

    *ret_equal = found.count == 0;
    if (status >= 0 && found.count > 0)
        note_failure(check, point,
                     "the resumed run differs:", found.text.failed ? "" : found.text.data);
    kiln_differences_release(&found);
    return status;
}

/* Kill and resume one run, and count the result. */
static KilnStatus try_point(Check *check, Point point, uint64_t number, KilnError *err)
{
    Verdict *verdict = &check->by[point];
    KilnStatus status = KILN_OK;
    char *log = NULL;
    int kills = 1;
    bool equal = false;
    KilnRng rng;

    kiln_rng_init(&rng, SEED, KILN_RNG_USER, 0, number);
    End end = kill_once(check, point, &rng, err);
    verdict->missed += end == END_WELL;
    if (end == END_WELL)
        return KILN_OK;
    if (end == END_KILLED)
        end = resume(check, point, &kills, &rng);
    if (end == END_STOPPED)
        return KILN_E_INTERRUPTED;
    if (end == END_WELL)
        status = compare(check, point, &equal, err);
    else if ((log = end_of_log(check)) != NULL)
        note_failure(check, point, end == END_HUNG ? "the run hangs:" : "the run fails:", log);
    free(log);
    verdict->kills += kills;
    verdict->failed += end != END_WELL;
    verdict->equal += equal ? kills : 0;
    verdict->differ += end == END_WELL && !equal ? kills : 0;
    check->done += kills;
    return status;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static void show_progress(const Check *check)
{
    const double seconds = kiln_clock() - check->began;
    const double rest = (double)(check->wanted - check->done);
    char left[KILN_UNIT_TEXT] = "?";

    if (check->done > 0)
        kiln_seconds_text(seconds / (double)check->done * fmax(rest, 0.0), left);
    if (check->console.terminal || check->done % 10 == 0)
        fprintf(stderr, "%s%lld/%lld kills, %s left%s", check->console.terminal ? "\r\033[K" : "",
                (long long)check->done, (long long)check->wanted, left,
                check->console.terminal ? "" : "\n");
    fflush(stderr);
}

static KilnStatus run_undisturbed(Check *check, KilnError *err)
{
    const double began = kiln_clock();
    const End end = run(check, false, KILL_ANY, (double)INFINITY);
    char seconds[KILN_UNIT_TEXT];

    check->began = kiln_clock();
    check->seconds = check->began - began;
    if (end == END_STOPPED)
        return KILN_E_INTERRUPTED;
    if (end != END_WELL) {
        char *log = end_of_log(check);

        kiln_error_set(err, KILN_E_IO, "the undisturbed run fails:\n%s", log != NULL ? log : "");
        free(log);
        return KILN_E_IO;
    }
    if (rename(check->run, check->undisturbed) != 0)
        return kiln_error_errno(err, check->undisturbed);
    printf("undisturbed: %lld steps in %s\n", (long long)check->steps,
           kiln_seconds_text(check->seconds, seconds));
    fflush(stdout);
    return KILN_OK;
}

/* Use the kill points in turn, as far as the run reaches them. */
static KilnStatus run_killed(Check *check, KilnError *err)
{
    KilnStatus status = KILN_OK;
    int64_t missed = 0;

    for (uint64_t number = 0; check->done < check->wanted && status >= 0; number++) {
        const Point point = (Point)(number % POINTS);
        const int64_t before = check->done;

        if (check->by[point].reached && check->by[point].missed <= 2) {
            show_progress(check);
            status = try_point(check, point, number, err);
        }
        missed = check->done > before ? 0 : missed + 1;
        if (missed > 3 * (int64_t)POINTS && status >= 0)
            status = kiln_error_set(err, KILN_E_IO,
                                    "the runs end before they can be killed: give one that takes "
                                    "seconds");
    }
    if (check->console.terminal)
        fputs("\r\033[K", stderr);
    return status;
}

static bool print_table(const Check *check)
{
    Verdict all = { 0 };

    printf("%-24s %6s %6s %6s %6s\n", "killed", "kills", "equal", "differ", "failed");
    for (int i = 0; i < POINTS; i++) {
        const Verdict *one = &check->by[i];

        if (one->reached)
            printf("%-24s %6lld %6lld %6lld %6lld\n", point_names[i], (long long)one->kills,
                   (long long)one->equal, (long long)one->differ, (long long)one->failed);
        else
            printf("%-24s      - (this run does not reach it)\n", point_names[i]);
        all.kills += one->kills;
        all.equal += one->equal;
    }
    if (check->failures.length > 0 && !check->failures.failed)
        printf("\n%s", check->failures.data);
    const bool good = all.kills == all.equal;
    printf("\n%lld kills, %lld equal: a run that is killed and resumed %s\n", (long long)all.kills,
           (long long)all.equal,
           good ? "ends with the same bytes" : "does NOT end with the same bytes");
    return good;
}

/* ---- Configs that cannot be compared ----------------------------------------------------------
 */

typedef struct ClockCheck {
    const KilnConfig *config;
    const char *found; /* NULL: nothing depends on the clock */
} ClockCheck;

static void find_clock(void *ctx, const KilnConfigNode *node, const char *path,
                       const KilnComponent *component)
{
    ClockCheck *check = ctx;
    const KilnConfigNode *interval = kiln_node_get(node, "train_time_interval"), *value = NULL;

    (void)path;
    if (component->kind == KILN_KIND_CALLBACK && strcmp(component->name, "timer") == 0)
        check->found = "the callback timer";
    if (interval != NULL && kiln_config_resolve(check->config, interval, &value, NULL) >= 0 &&
        value != NULL && value->kind == KILN_NODE_SCALAR && value->scalar != KILN_SCALAR_NULL)
        check->found = "train_time_interval of model_checkpoint";
}

static KilnStatus check_config(KilnConfig *config, const KilnRegistry *registry, KilnError *err)
{
    ClockCheck clocks = { .config = config };
    KilnOptions options = { 0 };
    KilnStatus status = kiln_options_read(config, &options, err);

    if (status < 0)
        return status;
    kiln_selection_visit(config, registry, find_clock, &clocks);
    if (options.trainer->val_check_interval.of == KILN_QUANTITY_DURATION)
        clocks.found = "trainer.val_check_interval as a time";
    if (options.trainer->max_time != NULL)
        clocks.found = "trainer.max_time";
    if (clocks.found != NULL)
        status = kiln_error_set(err, KILN_E_USAGE,
                                "%s depends on the clock: two runs of this config differ even "
                                "without a kill; leave it out",
                                clocks.found);
    else if (!options.trainer->enable_checkpointing)
        status = kiln_error_set(err, KILN_E_USAGE,
                                "trainer.enable_checkpointing=false: there is nothing to resume "
                                "from");
    kiln_options_release(&options);
    return status;
}

/* ---- The command -------------------------------------------------------------------- */

static KilnStatus prepare(Check *check, KilnError *err)
{
    const char *tmp = kiln_tmpdir("/tmp"), *count = check->args->count;

    check->wanted = KILLS;
    if (count != NULL && (kiln_parse_i64(count, &check->wanted, NULL) < 0 || check->wanted < 1))
        return kiln_error_set(err, KILN_E_USAGE, "-n %s: expected a number of kills", count);
    snprintf(check->folder, sizeof(check->folder), "%s/kiln-verify-XXXXXX",
             strlen(tmp) < 32 ? tmp : "/tmp");
    if (mkdtemp(check->folder) == NULL)
        return kiln_error_errno(err, check->folder);
    snprintf(check->run, sizeof(check->run), "%s/run", check->folder);
    snprintf(check->undisturbed, sizeof(check->undisturbed), "%s/undisturbed", check->folder);
    snprintf(check->log, sizeof(check->log), "%s/log", check->folder);
    return make_command(check, err);
}

static KilnStatus verify(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                         void *ctx, KilnError *err)
{
    Check check = { .args = args,
                    .console = kiln_screen_console(stderr),
                    .stop = kiln_screen_catch_signals().stop };
    KilnStatus status = check_config(config, registry, err);

    (void)ctx;
    if (status >= 0)
        status = prepare(&check, err);
    if (status >= 0)
        status = run_undisturbed(&check, err);
    if (status >= 0)
        status = run_killed(&check, err);
    const bool differs = status >= 0 && !print_table(&check);
    if (differs)
        printf("the runs of the last kill are in %s\n", check.folder);
    else if (check.folder[0] != '\0')
        (void)!kiln_path_remove(check.folder, NULL);
    kiln_text_release(&check.failures);
    free(check.command);
    return differs ? KILN_E_IO : status; /* the table is the message */
}

int kiln_command_verify_resume(KilnArgs *args)
{
    return kiln_command_run(args, true, verify, NULL);
}
