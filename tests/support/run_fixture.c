#include "tests/support/run_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"

void sleep_ms(int64_t ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    if (ms > 0)
        nanosleep(&time, NULL);
}

void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

char work[64];

int make_work(void **unused)
{
    (void)unused;
    memset(&recorder, 0, sizeof(recorder));
    snprintf(work, sizeof(work), "%s/kiln-train-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(work) == NULL;
}

int remove_work(void **unused)
{
    (void)unused;
    return kiln_path_remove(work, NULL) < 0;
}

static void capture_text(void *ctx, const char *text)
{
    size_t used = strlen(recorder.printed);

    (void)ctx;
    snprintf(recorder.printed + used, sizeof(recorder.printed) - used, "%s", text);
}

static const KilnConsole capturing = { .width = 80, .write = capture_text };

const KilnComponent *const *extra_components;

void compose(Composed *ret, const char *const *overrides)
{
    static const KilnComponent *const components[] = { &points_component, &plane_component,
                                                       &recorder_component, NULL };
    KilnComposeRequest request = {
        .config_path = "tests/data/train",
        .overrides = overrides,
        .sections = kiln_run_sections(),
    };
    KilnErrors *errors = NULL;
    KilnError err = { 0 };

    *ret = (Composed) { 0 };
    assert_int_equal(kiln_registry_new(&ret->registry, &err), KILN_OK);
    if (kiln_registry_insert(ret->registry, components, &err) < 0 ||
        (extra_components != NULL &&
         kiln_registry_insert(ret->registry, extra_components, &err) < 0))
        fail_msg("%s", err.text);
    request.registry = ret->registry;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    if (kiln_compose(&request, &ret->config, errors) < 0 ||
        kiln_config_check(ret->config, ret->registry, errors) < 0)
        fail_msg("%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    ret->env = (KilnRunEnv) {
        .registry = ret->registry,
        .console = &capturing,
        .overrides = overrides,
        .stop = &recorder.stop,
    };
}

void composed_free(Composed *composed)
{
    kiln_config_free(composed->config);
    kiln_registry_free(composed->registry);
}

enum { MAX_OVERRIDES = 24 };

KilnStatus fit(const char *name, const char *overrides, KilnRunResult *result, KilnError *err)
{
    char dir[192], words[1024];
    const char *list[MAX_OVERRIDES + 1] = { NULL };
    size_t n = 0;
    Composed composed;

    if (name != NULL) {
        snprintf(dir, sizeof(dir), "kiln.run.dir=%s/%s", work, name);
        list[n++] = dir;
    }
    snprintf(words, sizeof(words), "%s", overrides);
    for (char *p = words; *p != '\0';) {
        assert_true(n < MAX_OVERRIDES);
        list[n++] = p;
        p += strcspn(p, " ");
        if (*p == ' ')
            *p++ = '\0';
    }
    recorder.stop = 0;
    recorder.hooks[0] = '\0';
    compose(&composed, list);
    *result = (KilnRunResult) { 0 };
    KilnStatus status = kiln_run_fit(composed.config, &composed.env, result, err);
    composed_free(&composed);
    return status;
}

void fit_well(const char *name, const char *overrides, const char *status)
{
    KilnRunResult result;
    KilnError err = { 0 };

    if (fit(name, overrides, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(result.status, status);
}
