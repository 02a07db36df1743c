/* Writes and reads the task files of jobs: .kiln/jobs/<n>.json. */
#include "sweep/remote/task_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"

static char *path_of(const char *sweep, size_t number)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/.kiln/jobs/%zu.json", sweep, number);
    return kiln_text_take(&path);
}

static json_t *pack(const KilnSweep *sweep, const KilnJob *job)
{
    json_t *overrides = json_array(), *more = json_array();

    for (size_t i = 0; i < sweep->n_more; i++)
        kiln_json_add(&more,
                      json_pack("{s:o, s:I}", "metric", kiln_json_text(sweep->more[i].metric),
                                "mode", (json_int_t)sweep->more[i].mode));
    for (const char *const *override = job->overrides; *override != NULL; override++)
        kiln_json_add(&overrides, kiln_json_text(*override));
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:b}", "dir", kiln_json_text(job->dir), "overrides",
                     overrides, "metric", kiln_json_text(sweep->metric), "mode",
                     sweep->n_more > 0 ? (json_int_t)sweep->metric_mode
                                       : (json_int_t)sweep->rank->mode,
                     "more", more, "asks", kiln_sweep_tells(sweep));
}

KilnStatus kiln_task_file_write(const KilnSweep *sweep, size_t number, KilnError *err)
{
    char *path = path_of(sweep->path, number), *text = NULL;
    json_t *task = pack(sweep, &sweep->jobs.items[number]);
    KilnStatus status = KILN_OK;

    if (path == NULL || (text = kiln_json_dump(task, JSON_INDENT(1))) == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        status = kiln_dir_make_parent(path, err);
    if (status >= 0)
        status = kiln_file_write(path, text, strlen(text), err);
    json_decref(task);
    free(text);
    free(path);
    return status;
}

static KilnStatus unpack_more(const json_t *more, KilnTaskFile *ret, KilnError *err)
{
    const size_t n = json_array_size(more);
    KilnObjective *objectives = kiln_arena_alloc(&ret->arena, (n + 1) * sizeof(*objectives));

    for (size_t i = 0; i < n && objectives != NULL; i++) {
        const char *metric = json_string_value(json_object_get(json_array_get(more, i), "metric"));

        objectives[i] = (KilnObjective) {
            .metric = kiln_arena_strdup(&ret->arena, metric != NULL ? metric : ""),
            .mode = (KilnMode)json_integer_value(json_object_get(json_array_get(more, i), "mode")),
        };
        if (objectives[i].metric == NULL)
            return kiln_error_nomem(err, 1);
    }
    ret->more = objectives;
    ret->n_more = n < KILN_MAX_OBJECTIVES ? n : KILN_MAX_OBJECTIVES - 1;
    return objectives != NULL ? KILN_OK : kiln_error_nomem(err, n);
}

static KilnStatus unpack(const json_t *json, const char *sweep, size_t number, KilnTaskFile *ret,
                         KilnError *err)
{
    KilnArena *arena = &ret->arena;
    const char *dir = json_string_value(json_object_get(json, "dir"));
    const char *metric = json_string_value(json_object_get(json, "metric"));

    if (dir == NULL || metric == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s/.kiln/jobs/%zu.json: no task of a job", sweep,
                              number);
    ret->task = (KilnSweepTask) {
        .number = number,
        .dir = kiln_arena_printf(arena, "%s/%s", sweep, dir),
        .overrides = kiln_texts_read(arena, json_object_get(json, "overrides")),
        .metric = kiln_arena_strdup(arena, metric),
        .mode = json_integer_value(json_object_get(json, "mode")),
    };
    ret->asks = json_is_true(json_object_get(json, "asks"));
    return ret->task.dir != NULL && ret->task.overrides != NULL && ret->task.metric != NULL
               ? unpack_more(json_object_get(json, "more"), ret, err)
               : kiln_error_nomem(err, strlen(dir));
}

KilnStatus kiln_task_file_read(const char *sweep, size_t number, KilnTaskFile *ret, KilnError *err)
{
    char *path = path_of(sweep, number);
    json_t *json = NULL;
    KilnStatus status = path != NULL ? kiln_json_read(path, &json, err)
                                     : kiln_error_nomem(err, strlen(sweep));

    *ret = (KilnTaskFile) { .asks = false };
    if (status >= 0)
        status = unpack(json, sweep, number, ret, err);
    json_decref(json);
    free(path);
    return status;
}

void kiln_task_file_release(KilnTaskFile *file)
{
    kiln_arena_release(&file->arena);
    *file = (KilnTaskFile) { .asks = false };
}
