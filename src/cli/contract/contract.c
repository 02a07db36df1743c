/* Runs the checks of all components, each in a child process. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "cli/contract/contract.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/contract/builtin_words.h"
#include "cli/checks/checks.h"
#include "cli/contract/sample_data.h"
#include "cli/crash.h"
#include "kiln/tools/clock.h"
#include "registry/registry.h"

typedef struct Session {
    const KilnContractRequest *request;
    KilnContractReport *report;
    KilnContractChild child;
    char folder[64]; /* scratch */
    char output[96];
} Session;

/* ---- The report ------------------------------------------------------------------------------ */

static KilnStatus add(Session *session, const char *component, const char *check, double seconds,
                      KilnError *err)
{
    KilnContractReport *report = session->report;
    const KilnContractPage *page = session->child.page;

    if (!KILN_RESERVE(report->list, report->capacity, report->n + 1))
        return kiln_error_nomem(err, sizeof(*report->list));
    KilnContractFinding *finding = &report->list[report->n++];
    *finding = (KilnContractFinding) {
        .component = kiln_strdup(component),
        .check = kiln_strdup(check),
        .level = (KilnContractLevel)page->level,
        .text = kiln_strdup(page->text),
        .advice = kiln_strdup(page->advice),
        .seconds = seconds,
    };
    report->levels[finding->level]++;
    return finding->component != NULL && finding->check != NULL && finding->text != NULL &&
                   finding->advice != NULL
               ? KILN_OK
               : kiln_error_nomem(err, strlen(page->text));
}

void kiln_contract_report_release(KilnContractReport *report)
{
    for (size_t i = 0; i < report->n; i++) {
        free((char *)report->list[i].component);
        free((char *)report->list[i].check);
        free((char *)report->list[i].text);
        free((char *)report->list[i].advice);
    }
    free(report->list);
    *report = (KilnContractReport) { 0 };
}

/* ---- In the child: a registry ---------------------------------------------------------------- */

/* With the plugins of the request; the file comes last. */
static KilnStatus open_registry(const KilnContractRequest *request, KilnRegistry **ret,
                                KilnError *err)
{
    KilnStatus status = kiln_registry_new(ret, err);

    if (status >= 0)
        kiln_crash_registry(*ret);
    for (size_t i = 0; status >= 0 && request->plugins[i] != NULL; i++)
        status = kiln_registry_load(*ret, request->plugins[i], err);
    if (status >= 0 && request->file != NULL)
        status = kiln_registry_load(*ret, request->file, err);
    return status;
}

/* Whether the component is one that the request names. */
static bool is_wanted(const KilnContractRequest *request, const KilnRegistry *registry,
                      const KilnComponent *component)
{
    const KilnPlugin *plugin = kiln_registry_plugin_of(registry, component);
    const KilnPlugin *last = registry->plugin_count > 0
                                 ? &registry->plugins[registry->plugin_count - 1]
                                 : NULL;
    const KilnComponent *named = NULL;

    if (request->name != NULL &&
        (kiln_registry_target(registry, request->name, KILN_KIND_ANY, &named, NULL) < 0 ||
         named != component))
        return false;
    return request->file != NULL   ? plugin != NULL && plugin == last
           : request->name != NULL ? true
                                   : plugin == NULL;
}

/* The body of the load: write the names of the wanted components to the page. */
static void load(void *ctx)
{
    Session *session = ctx;
    KilnContractPage *page = session->child.page;
    const KilnContractRequest *request = session->request;
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    size_t used = 0, n = 0;

    KilnStatus status = open_registry(request, &registry, &err);
    const KilnComponent *named;
    if (status >= 0 && request->name != NULL)
        status = kiln_registry_target(registry, request->name, KILN_KIND_ANY, &named, &err);
    if (status < 0) {
        page->level = KILN_CONTRACT_FAILED;
        snprintf(page->text, sizeof(page->text), "%s", err.text);
        return;
    }
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);

        if (!is_wanted(request, registry, component) || used > sizeof(page->list) - 128)
            continue;
        used += (size_t)snprintf(page->list + used, 128, "%s/%s\n", kiln_kind_name(component->kind),
                                 component->name);
        n++;
    }
    snprintf(page->text, sizeof(page->text), "%zu component%s, ABI %u, sizes of all structs", n,
             n == 1 ? "" : "s", KILN_ABI);
    kiln_registry_free(registry);
}

/* ---- In the child: a check ------------------------------------------------------------------- */

typedef struct Job {
    Session *session;
    const char *component;
    const KilnContractCheck *check;
    char folder[96]; /* of the component's runs */
} Job;

/* The words with which a component is checked, in the arena: those that a built-in one needs, whose
 * sample data are written first, and the user's. */
static KilnStatus collect_words(const Session *session, KilnCase *self, KilnError *err)
{
    enum { WORDS = 64 };
    const bool built_in = kiln_registry_plugin_of(self->registry, self->component) == NULL;
    const char *text = built_in ? kiln_builtin_words(self->component) : NULL;
    const char **words = kiln_arena_alloc(&self->arena, (WORDS + 1) * sizeof(*words));
    const char *data = kiln_arena_printf(&self->arena, "%s/data", session->folder);
    size_t n = 0, length;

    if (words == NULL || data == NULL)
        return kiln_error_nomem(err, WORDS);
    for (; text != NULL && n < WORDS && (length = strcspn(text, " ")) > 0; n++) {
        KilnText word = { 0 };

        for (size_t i = 0; i < length; i++)
            text[i] == '@' ? kiln_text_append(&word, data) : kiln_text_char(&word, text[i]);
        words[n] = kiln_text_to_arena(&word, &self->arena);
        text += length + strspn(text + length, " ");
    }
    for (size_t i = 0; session->request->words[i] != NULL && n < WORDS; i++)
        words[n++] = session->request->words[i];
    self->words = words;
    text = built_in ? kiln_builtin_words(self->component) : NULL;
    return text != NULL && strchr(text, '@') != NULL && !kiln_is_dir(data)
               ? kiln_sample_data_write(data, err)
           : self->arena.failed ? kiln_error_nomem(err, WORDS)
                                : KILN_OK;
}

static void run_check(const KilnContractCheck *check, KilnCase *self)
{
    kiln_contract_trace(self->component);
    check->run(self);
}

static void check(void *ctx)
{
    const Job *job = ctx;
    const KilnContractRequest *request = job->session->request;
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnCase self = { .request = request, .page = job->session->child.page, .folder = job->folder };

    KilnStatus status = open_registry(request, &registry, &err);
    if (status >= 0)
        status = kiln_registry_target(registry, job->component, KILN_KIND_ANY, &self.component,
                                      &err);
    self.registry = registry;
    if (status >= 0)
        status = collect_words(job->session, &self, &err);
    if (status < 0)
        kiln_case_fail_with(&self, &err);
    else
        run_check(job->check, &self);
    kiln_arena_release(&self.arena);
    kiln_registry_free(registry);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static KilnStatus run(Session *session, const char *component, const char *name,
                      void (*body)(void *ctx), void *ctx, KilnError *err)
{
    const KilnContractRequest *request = session->request;
    const double began = kiln_clock();

    if (request->progress != NULL)
        request->progress(request->ctx, component, name);
    KilnStatus status = kiln_contract_child_run(&session->child, body, ctx, err);
    return status >= 0 ? add(session, component, name, kiln_clock() - began, err) : status;
}

static KilnStatus check_component(Session *session, const char *component, unsigned kind,
                                  KilnError *err)
{
    const KilnContractCheck *at;
    KilnCheckNeeds have = KILN_NEEDS_NOTHING;
    Job job = { .session = session, .component = component };
    KilnStatus status;

    snprintf(job.folder, sizeof(job.folder), "%s/runs", session->folder);
    status = kiln_dir_make(job.folder, err);
    for (size_t i = 0; status >= 0 && (at = kiln_contract_check_at(i)) != NULL; i++) {
        if ((at->kinds != 0 && (at->kinds & (1u << kind)) == 0) || at->needs > have)
            continue;
        job.check = at;
        status = run(session, component, at->name, check, &job, err);
        if (status >= 0 && session->child.page->level == KILN_CONTRACT_PASSED && at->gives > have)
            have = at->gives;
    }
    session->report->components++;
    (void)!kiln_path_remove(job.folder, NULL);
    return status;
}

static KilnStatus check_all(Session *session, const char *names, KilnError *err)
{
    KilnStatus status = KILN_OK;
    char name[128];

    while (*names != '\0' && status >= 0) {
        const size_t length = strcspn(names, "\n");

        snprintf(name, sizeof(name), "%.*s", (int)length, names);
        names += length + (names[length] == '\n');
        const KilnKind kind = kiln_kind_find(name, strcspn(name, "/"));
        status = check_component(session, name, (unsigned)kind, err);
    }
    return status;
}

/* Where scratch files go: runs sync theirs, which takes no time in memory if there is plenty. */
static const char *scratch(void)
{
    static const double plenty = 4e9;
    static const char memory[] = "/dev/shm";
    const char *tmp = kiln_tmpdir(NULL);
    struct statvfs room;

    if (tmp != NULL && strlen(tmp) < 32)
        return tmp;
    return access(memory, W_OK) == 0 && statvfs(memory, &room) == 0 &&
                   (double)room.f_bavail * (double)room.f_frsize > plenty
               ? memory
               : "/tmp";
}

static KilnStatus make_folder(Session *session, KilnError *err)
{
    snprintf(session->folder, sizeof(session->folder), "%s/kiln-check-XXXXXX", scratch());
    if (mkdtemp(session->folder) == NULL) {
        kiln_error_errno(err, session->folder);
        session->folder[0] = '\0';
        return KILN_E_IO;
    }
    snprintf(session->output, sizeof(session->output), "%s/output", session->folder);
    return KILN_OK;
}

/* Load the file, or the built-in components, and check what is wanted of them. */
static KilnStatus load_and_check(Session *session, KilnError *err)
{
    const KilnContractRequest *request = session->request;
    KilnContractPage *page = session->child.page;
    KilnStatus status = request->file != NULL
                            ? run(session, "", "loading", load, session, err)
                            : kiln_contract_child_run(&session->child, load, session, err);

    if (status < 0 || (request->file != NULL && page->level == KILN_CONTRACT_FAILED))
        return status;
    if (page->level == KILN_CONTRACT_FAILED)
        return kiln_error_set(err, KILN_E_PLUGIN, "%s", page->text);
    if (page->list[0] == '\0')
        return kiln_error_set(err, KILN_E_KEY, "%s is no component of %s", request->name,
                              request->file);
    char *names = kiln_strdup(page->list);
    if (names == NULL)
        return kiln_error_nomem(err, strlen(page->list));
    status = check_all(session, names, err);
    free(names);
    return status;
}

KilnStatus kiln_contract_check(const KilnContractRequest *request, KilnContractReport *report,
                               KilnError *err)
{
    Session session = { .request = request, .report = report };
    KilnStatus status = make_folder(&session, err);

    session.child = (KilnContractChild) { .output = session.output,
                                          .timeout = request->timeout,
                                          .stop = request->stop };
    if (status >= 0)
        status = kiln_contract_child_open(&session.child, err);
    if (status >= 0)
        status = load_and_check(&session, err);
    kiln_contract_child_close(&session.child);
    if (session.folder[0] != '\0')
        (void)!kiln_path_remove(session.folder, NULL);
    return status;
}
