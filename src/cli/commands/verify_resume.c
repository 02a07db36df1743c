/* kiln verify-resume: kills and resumes runs, and compares their checkpoints and logs with those of
 * an undisturbed run. cli/verify/kill_points.h chooses the kill points, cli/verify/differences.h
 * compares. */
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
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/help/selection.h"
#include "cli/screen/screen.h"
#include "cli/verify/differences.h"
#include "cli/verify/kill_points.h"
#include "kiln/run.h"
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

typedef struct Verdict {
    int64_t kills, equal, differ, failed, missed;
} Verdict;

typedef struct Check {
    const KilnArgs *args;
    char program[4096], folder[64], run[96], undisturbed[96], log[96];
    char last[128]; /* the last word of a run's command */
    KilnRunProfile profile;
    Verdict by[KILN_KILL_COUNT];
    int64_t wanted, done;
    double began;
    KilnConsole console;
    const volatile int *stop;
    KilnText failures;
} Check;

/* ---- A run ------------------------------------------------------------------------------ */

static void pause_for(double seconds)
{
    const struct timespec time = { .tv_nsec = (long)(1e9 * seconds) };

    nanosleep(&time, NULL);
}

/* In the child: execute `words`, with output to the log. */
static void execute(const Check *check, char *const *words)
{
    int log = open(check->log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int nothing = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log < 0 || nothing < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || dup2(nothing, 0) < 0)
        _exit(127);
    execv(check->program, words);
    _exit(127);
}

static size_t add_flag(const char **words, size_t n, const char *flag, const char *value)
{
    if (value == NULL)
        return n;
    words[n] = flag;
    words[n + 1] = value;
    return n + 2;
}

/* Start a run in a child process: `train FLAGS WORDS kiln.run.dir=RUN`, or `train FLAGS
 * resume=RUN`. */
static pid_t start(Check *check, bool resumes)
{
    const KilnArgs *args = check->args;
    const char **words = calloc(args->n_words + 4 * KILN_MAX_REPEATED + 8, sizeof(*words));
    size_t n = 0;

    if (words == NULL)
        return -1;
    words[n++] = check->program;
    words[n++] = "train";
    for (size_t i = 0; args->plugins[i] != NULL; i++)
        n = add_flag(words, n, "--plugin", args->plugins[i]);
    for (size_t i = 0; args->config_dirs[i] != NULL; i++)
        n = add_flag(words, n, "--config-dir", args->config_dirs[i]);
    if (!resumes) {
        n = add_flag(words, n, "--config-path", args->config_path);
        n = add_flag(words, n, "--config-name", args->config_name);
    }
    for (size_t i = 0; i < args->n_words && !resumes; i++)
        words[n++] = args->words[i];
    snprintf(check->last, sizeof(check->last), "%s=%s", resumes ? "resume" : "kiln.run.dir",
             check->run);
    words[n] = check->last;
    pid_t child = fork();
    if (child == 0)
        execute(check, (char *const *)words);
    free(words);
    return child;
}

/* How a run ended. */
typedef enum End { END_WELL, END_KILLED, END_FAILED, END_HUNG, END_STOPPED } End;

/* Wait for a run's end, and kill it at `target` (NULL: never). `profile` (NULL: none) records what
 * the run does. */
static End watch(const Check *check, pid_t child, const KilnKillTarget *target,
                 KilnRunProfile *profile)
{
    const double began = kiln_clock();
    const double longest = profile != NULL ? INFINITY : patience * check->profile.seconds + 60.0;
    int status = 0;
    KilnLiveSnapshot live;

    for (;;) {
        const double seconds = kiln_clock() - began;
        const bool is_live = kiln_live_page_read(check->run, &live, NULL) >= 0 &&
                             live.run.pid == child;

        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? END_WELL : END_FAILED;
        if (is_live && profile != NULL)
            kiln_run_profile_note(profile, seconds, &live);
        const bool reached = target != NULL &&
                             kiln_kill_target_reached(target, seconds, is_live ? &live : NULL);
        if (reached || seconds > longest || *check->stop != 0) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return *check->stop != 0 ? END_STOPPED : reached ? END_KILLED : END_HUNG;
        }
        pause_for(poll_s);
    }
}

/* ---- One kill ------------------------------------------------------------------------------ */

static void note_failure(Check *check, KilnKillPoint point, const char *what, const char *detail)
{
    kiln_text_printf(&check->failures, "kill %lld, %s: %s\n%s", (long long)check->done + 1,
                     kiln_kill_point_name(point), what, detail);
}

/* The end of the runs' output, owned by the caller. */
static char *end_of_log(const Check *check)
{
    enum { TAIL = 600 };
    char *text = NULL, *end;
    size_t size = 0;

    if (kiln_file_read(check->log, (size_t)1 << 26, &text, &size, NULL) < 0)
        return kiln_strdup("");
    end = kiln_strdup(text + (size > TAIL ? size - TAIL : 0));
    free(text);
    return end;
}

/* Start a run and kill it at a kill point. Tries again with an earlier target when the run ends
 * first. */
static End kill_once(Check *check, KilnKillPoint point, KilnRng *rng, KilnError *err)
{
    KilnKillTarget target = kiln_kill_target_draw(point, &check->profile, rng);

    for (int i = 0; i < TRIES; i++) {
        if (kiln_path_remove(check->run, err) < 0 || kiln_path_remove(check->log, err) < 0)
            return END_FAILED;
        End end = watch(check, start(check, false), &target, NULL);
        if (end != END_WELL)
            return end;
        target.step /= 2;
        target.after = target.after >= 0.0 ? target.after * 0.8 : -1.0;
    }
    return END_WELL;
}

/* Resume the run until it ends, with more kills for KILN_KILL_AGAIN. A run that was killed before
 * it had a config is started again. */
static End resume(Check *check, KilnKillPoint point, int *kills, KilnRng *rng)
{
    char config[128];
    End end = END_KILLED;

    snprintf(config, sizeof(config), "%s/.kiln/config.yaml", check->run);
    while (end == END_KILLED) {
        const bool again = point == KILN_KILL_AGAIN && *kills < MOST_KILLS;
        const KilnKillTarget target = kiln_kill_target_draw(KILN_KILL_ANY, &check->profile, rng);

        end = watch(check, start(check, kiln_is_file(config)), again ? &target : NULL, NULL);
        *kills += end == END_KILLED;
    }
    return end;
}

/* Compare the resumed run with the undisturbed one. */
static KilnStatus judge(Check *check, KilnKillPoint point, bool *ret_equal, KilnError *err)
{
    KilnDifferences found = { .most = SHOWN, .sides = { "undisturbed run", "resumed run" } };
    char a[128], b[128];

    snprintf(a, sizeof(a), "%s/checkpoints", check->undisturbed);
    snprintf(b, sizeof(b), "%s/checkpoints", check->run);
    KilnStatus status = kiln_differences_folders("checkpoints/", a, b, &found, err);
    if (status >= 0)
        status = kiln_differences_logs(check->undisturbed, check->run, &found, err);

    *ret_equal = found.count == 0;
    if (status >= 0 && found.count > 0)
        note_failure(check, point,
                     "the resumed run differs:", found.text.failed ? "" : found.text.data);
    kiln_text_release(&found.text);
    return status;
}

static KilnStatus stopped(KilnError *err)
{
    return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted");
}

/* Kill and resume one run, and count the result. */
static KilnStatus try_point(Check *check, KilnKillPoint point, uint64_t number, KilnError *err)
{
    Verdict *verdict = &check->by[point];
    char *log = NULL;
    int kills = 1;
    bool equal = false;
    KilnRng rng;

    kiln_rng_init(&rng, SEED, KILN_RNG_USER, 0, number);
    End end = kill_once(check, point, &rng, err);
    if (end == END_WELL) {
        verdict->missed++;
        return KILN_OK;
    }
    if (end == END_KILLED)
        end = resume(check, point, &kills, &rng);
    if (end == END_STOPPED)
        return stopped(err);
    verdict->kills += kills;
    KilnStatus status = KILN_OK;
    if (end == END_WELL)
        status = judge(check, point, &equal, err);
    else if ((log = end_of_log(check)) != NULL)
        note_failure(check, point, end == END_HUNG ? "the run hangs:" : "the run fails:", log);
    free(log);
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
    const End end = watch(check, start(check, false), NULL, &check->profile);

    check->profile.seconds = kiln_clock() - began;
    if (end == END_STOPPED)
        return stopped(err);
    if (end != END_WELL) {
        char *log = end_of_log(check);

        kiln_error_set(err, KILN_E_IO, "the undisturbed run fails:\n%s", log != NULL ? log : "");
        free(log);
        return KILN_E_IO;
    }
    if (rename(check->run, check->undisturbed) != 0)
        return kiln_error_errno(err, check->undisturbed);
    return KILN_OK;
}

/* Use the kill points in turn, as far as the run reaches them. */
static KilnStatus run_killed(Check *check, KilnError *err)
{
    KilnStatus status = KILN_OK;
    int64_t missed = 0;

    for (uint64_t number = 0; check->done < check->wanted && status >= 0; number++) {
        const KilnKillPoint point = (KilnKillPoint)(number % KILN_KILL_COUNT);
        const int64_t before = check->done;

        if (!check->profile.has[point] || check->by[point].missed > 2)
            continue;
        show_progress(check);
        status = try_point(check, point, number, err);
        missed = check->done > before ? 0 : missed + 1;
        if (missed > 2 * (int64_t)KILN_KILL_COUNT)
            return kiln_error_set(err, KILN_E_IO,
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
    for (int i = 0; i < KILN_KILL_COUNT; i++) {
        const Verdict *one = &check->by[i];

        if (!check->profile.has[i]) {
            printf("%-24s      - (this run does not reach it)\n",
                   kiln_kill_point_name((KilnKillPoint)i));
            continue;
        }
        printf("%-24s %6lld %6lld %6lld %6lld\n", kiln_kill_point_name((KilnKillPoint)i),
               (long long)one->kills, (long long)one->equal, (long long)one->differ,
               (long long)one->failed);
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

static KilnStatus check_config(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                               void *ctx, KilnError *err)
{
    ClockCheck clocks = { .config = config };
    KilnOptions options = { 0 };
    KilnStatus status = kiln_options_read(config, &options, err);

    (void)args;
    (void)ctx;
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

static KilnStatus prepare(Check *check, KilnArgs *args, KilnError *err)
{
    const char *tmp = getenv("TMPDIR");

    check->wanted = KILLS;
    if (args->count != NULL &&
        (kiln_parse_i64(args->count, &check->wanted, NULL) < 0 || check->wanted < 1))
        return kiln_error_set(err, KILN_E_USAGE, "-n %s: expected a number of kills", args->count);
    if (args->multirun || kiln_args_take(args, "resume") != NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "give the arguments of one run: no -m, no resume=");
    if (snprintf(check->folder, sizeof(check->folder), "%s/kiln-verify-XXXXXX",
                 tmp != NULL && strlen(tmp) < 32 ? tmp : "/tmp") < 0 ||
        mkdtemp(check->folder) == NULL)
        return kiln_error_errno(err, check->folder);
    ssize_t n = readlink("/proc/self/exe", check->program, sizeof(check->program) - 1);
    if (n <= 0)
        return kiln_error_errno(err, "/proc/self/exe");
    check->program[n] = '\0';
    snprintf(check->run, sizeof(check->run), "%s/run", check->folder);
    snprintf(check->undisturbed, sizeof(check->undisturbed), "%s/undisturbed", check->folder);
    snprintf(check->log, sizeof(check->log), "%s/log", check->folder);
    return KILN_OK;
}

static KilnStatus verify(Check *check, KilnError *err)
{
    char seconds[KILN_UNIT_TEXT];
    KilnStatus status = run_undisturbed(check, err);

    if (status < 0)
        return status;
    printf("undisturbed: %lld steps in %s\n", (long long)check->profile.steps,
           kiln_seconds_text(check->profile.seconds, seconds));
    fflush(stdout);
    check->began = kiln_clock();
    return run_killed(check, err);
}

int kiln_command_verify_resume(KilnArgs *args)
{
    Check check = { .args = args, .console = kiln_screen_console(stderr) };
    KilnError err = { 0 };
    bool good = false;
    /* Checked here, so that errors are reported once, as train reports them. */
    const int refused = kiln_command_run(args, true, check_config, NULL);

    if (refused != 0)
        return refused;
    check.stop = kiln_screen_catch_signals().stop;
    KilnStatus status = prepare(&check, args, &err);
    if (status >= 0)
        status = verify(&check, &err);
    if (status >= 0)
        good = print_table(&check);
    else
        kiln_screen_error(args->command, &err);
    if (status >= 0 && !good)
        printf("the runs of the last kill are in %s\n", check.folder);
    else if (check.folder[0] != '\0')
        (void)!kiln_path_remove(check.folder, NULL);
    kiln_text_release(&check.failures);
    if (status == KILN_E_INTERRUPTED)
        return kiln_screen_signal_status();
    return status < 0 ? kiln_screen_exit_status(status) : good ? 0 : 1;
}
