/* Describes classes of Python when a config names them, each once; and refuses what a stranger's
 * config names. */
#include "python/python_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kiln/array.h"
#include "python/python_class.h"
#include "registry/plugin/plugin_trust.h"
#include "registry/registry.h"

/* How long the import of a module may take: torch takes seconds, a network drive minutes. */
static const double patience = 600.0;

/* A name that can't be used: found out once, though the config is read several times. */
typedef struct Failure {
    const char *name;
    KilnKind kind;
    KilnError err;
} Failure;

typedef struct Source {
    KilnPythonRequest request;
    KilnArena arena; /* of the classes */
    Failure *failures;
    size_t n_failures, capacity;
} Source;

/* ---- Asking Python --------------------------------------------------------------------------- */

/* A file that the config of a stranger names may run if this user has run it before. */
static KilnStatus check_trust(const char *name, const char *file, KilnError *err)
{
    KilnError why = { 0 };

    if (file != NULL && kiln_plugin_allowed(file, &why) >= 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_PLUGIN,
                          "%s is named by the config of a run, or one that is not your own "
                          "project's, and its code would run as you: %s: %.200s; allow it with "
                          "--trust",
                          name, file != NULL ? file : "part of Python",
                          file != NULL ? why.text
                                       : "it has no file whose content kiln could compare");
}

static KilnStatus ask(KilnPythonHost *host, const char *call_name, const char *name, KilnKind kind,
                      json_t **ret, KilnError *err)
{
    const char *kind_name = kind != KILN_KIND_ANY ? kiln_kind_name(kind) : NULL;
    const KilnPythonCall call = {
        .what = "import",
        .request = json_pack("{s:s, s:s, s:s?}", "call", call_name, "name",
                             name + strlen(KILN_PYTHON_PREFIX), "kind", kind_name),
    };

    return kiln_python_call(host, &call, ret, err);
}

static KilnStatus describe(const Source *source, KilnPythonHost *host, const char *name,
                           KilnKind kind, bool own, json_t **ret, KilnError *err)
{
    json_t *located = NULL;
    KilnStatus status = ask(host, "locate", name, kind, &located, err);
    const char *file = json_string_value(json_object_get(located, "file"));

    if (status < 0 && source->request.why != NULL && err != NULL) {
        const size_t n = strlen(err->text);

        snprintf(err->text + n, sizeof(err->text) - n, "; %s", source->request.why);
    }
    if (status >= 0 && !own)
        status = check_trust(name, file, err);
    if (status >= 0)
        status = ask(host, "describe", name, kind, ret, err);
    if (status >= 0 && file != NULL)
        kiln_plugin_allow(file); /* the user's own, or allowed before */
    json_decref(located);
    return status;
}

/* Describe in a process of its own: jobs of a sweep are forked from this one. What the module
 * prints is shown when the run imports it. */
static KilnStatus find_new(Source *source, const char *name, KilnKind kind, bool own,
                           const KilnPythonClass **ret, KilnError *err)
{
    const KilnPythonEnv env = { source->request.python, source->request.folder };
    const KilnPythonUse use = {
        .python = env.python, .folder = env.folder, .name = name, .timeout = patience
    };
    KilnPythonHost *host = NULL;
    json_t *described = NULL;
    KilnStatus status = kiln_python_host_start(&use, &host, err);

    if (status >= 0)
        status = describe(source, host, name, kind, own, &described, err);
    kiln_python_host_end(host);
    if (status >= 0)
        status = kiln_python_class_new(&source->arena, &env, name, described, ret, err);
    json_decref(described);
    return status;
}

/* ---- The registry's hook -----------------------------------------------------------------------
 */

static const Failure *failure_of(const Source *source, const char *name, KilnKind kind)
{
    for (size_t i = 0; i < source->n_failures; i++)
        if (source->failures[i].kind == kind && strcmp(source->failures[i].name, name) == 0)
            return &source->failures[i];
    return NULL;
}

static void remember_failure(Source *source, const char *name, KilnKind kind, const KilnError *err)
{
    const char *copy = kiln_arena_strdup(&source->arena, name);

    if (copy == NULL || !KILN_RESERVE(source->failures, source->capacity, source->n_failures + 1))
        return;
    source->failures[source->n_failures++] = (Failure) { copy, kind, *err };
}

static bool is_in_arguments(const KilnPythonRequest *request, const char *name)
{
    const char *const *argument = request->arguments;

    while (argument != NULL && *argument != NULL && strstr(*argument, name) == NULL)
        argument++;
    return argument != NULL && *argument != NULL;
}

static KilnStatus find(void *ctx, KilnRegistry *registry, const char *name, KilnKind kind,
                       const char *origin, KilnError *err)
{
    Source *source = ctx;
    const Failure *failure = failure_of(source, name, kind);
    const KilnPythonRequest *request = &source->request;
    const bool own = request->is_own == NULL ||
                     (!request->foreign && (origin == NULL || request->is_own(origin))) ||
                     is_in_arguments(request, name);
    const KilnPythonClass *class = NULL;
    KilnError inner = { 0 };

    if (failure != NULL) {
        if (err != NULL)
            *err = failure->err;
        return failure->err.status;
    }
    KilnStatus status = find_new(source, name, kind, own, &class, &inner);
    if (status >= 0)
        status = kiln_registry_add_python(registry, &class->component, class->file, class->version,
                                          &inner);
    if (status < 0) {
        remember_failure(source, name, kind, &inner);
        if (err != NULL)
            *err = inner;
    }
    return status;
}

static void release(void *ctx)
{
    Source *source = ctx;

    kiln_arena_release(&source->arena);
    free(source->failures);
    free(source);
}

KilnStatus kiln_python_open(KilnRegistry *registry, const KilnPythonRequest *request,
                            KilnError *err)
{
    Source *source = calloc(1, sizeof(*source));

    if (source == NULL)
        return kiln_error_nomem(err, sizeof(*source));
    source->request = *request;
    source->request.python = kiln_arena_strdup(&source->arena, request->python);
    source->request.folder = request->folder != NULL
                                 ? kiln_arena_strdup(&source->arena, request->folder)
                                 : NULL;
    if (source->arena.failed) {
        release(source);
        return kiln_error_nomem(err, strlen(request->python));
    }
    kiln_registry_set_source(
        registry, &(KilnComponentSource) { .ctx = source, .find = find, .release = release });
    return KILN_OK;
}
