/* Answers and instances of a component that is checked. case_run.c runs it. */
#include "cli/contract/case.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "cli/contract/case_words.h"

/* ---- Answers --------------------------------------------------------------------------------- */

/* Findings are one line each, which the page wraps. */
static void join_lines(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    for (char *at = text; (at = strchr(at, '\n')) != NULL;)
        *at = at > text && isalnum((unsigned char)at[-1]) ? ';' : ' ';
}

static void answer(KilnCase *self, KilnContractLevel level, const char *advice, const char *format,
                   va_list args)
{
    if (kiln_case_failed(self))
        return;
    vsnprintf(self->page->text, sizeof(self->page->text), format, args);
    join_lines(self->page->text);
    snprintf(self->page->advice, sizeof(self->page->advice), "%s", advice);
    self->page->level = (int)level;
}

void kiln_case_pass(KilnCase *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    answer(self, KILN_CONTRACT_PASSED, "", format, args);
    va_end(args);
}

void kiln_case_skip(KilnCase *self, const char *advice, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    answer(self, KILN_CONTRACT_SKIPPED, advice, format, args);
    va_end(args);
}

void kiln_case_fail(KilnCase *self, const char *advice, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    answer(self, KILN_CONTRACT_FAILED, advice, format, args);
    va_end(args);
}

void kiln_case_fail_with(KilnCase *self, const KilnError *err)
{
    kiln_case_fail(self, "", "%s", err->text);
}

bool kiln_case_failed(const KilnCase *self)
{
    return self->page->level == KILN_CONTRACT_FAILED;
}

/* ---- Instances ------------------------------------------------------------------------------- */

static KilnStatus compose(KilnCase *self, const char *const *overrides, KilnConfig **ret,
                          KilnErrors *errors)
{
    const KilnComposeRequest request = {
        .config_path = self->folder, /* without a config: the one that comes with kiln is taken */
        .overrides = overrides,
        .registry = self->registry,
        .sections = kiln_run_sections(),
    };
    KilnStatus status = kiln_compose(&request, ret, errors);

    return status >= 0 ? kiln_config_check(*ret, self->registry, errors) : status;
}

KilnErrors *kiln_case_config_errors(KilnCase *self, const char *const *overrides)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;

    if (kiln_errors_new(&errors) >= 0)
        (void)!compose(self, overrides, &config, errors);
    kiln_config_free(config);
    return errors;
}

/* Build `checked` of the default config with these overrides. */
static KilnStatus build(KilnCase *self, KilnKind kind, const char *const *overrides,
                        KilnCaseInstance *ret, KilnError *err)
{
    KilnErrors *errors = NULL;

    *ret = (KilnCaseInstance) { 0 };
    if (kiln_errors_new(&errors) < 0)
        return kiln_error_nomem(err, 1);
    KilnStatus status = compose(self, overrides, &ret->config, errors);
    if (status < 0)
        kiln_error_set(err, status, "%s", kiln_errors_text(errors, 0));
    else
        status = kiln_config_build(ret->config, "checked", self->registry, kind, &ret->instance,
                                   err);
    kiln_errors_free(errors);
    if (status < 0)
        kiln_case_close(ret);
    return status;
}

KilnStatus kiln_case_build(KilnCase *self, KilnCaseInstance *ret, KilnError *err)
{
    const char *const *words = kiln_case_instance_words(self);

    *ret = (KilnCaseInstance) { 0 };
    return words != NULL ? build(self, self->component->kind, words, ret, err)
                         : kiln_error_nomem(err, 1);
}

KilnStatus kiln_case_build_other(KilnCase *self, KilnKind kind, const char *name,
                                 KilnCaseInstance *ret, KilnError *err)
{
    const char *word = kiln_arena_printf(&self->arena, "+checked._target_=%s/%s",
                                         kiln_kind_name(kind), name);

    *ret = (KilnCaseInstance) { 0 };
    return word != NULL ? build(self, kind, (const char *const[]) { word, NULL }, ret, err)
                        : kiln_error_nomem(err, 1);
}

bool kiln_case_open(KilnCase *self, KilnCaseInstance *ret)
{
    KilnError err = { 0 };
    const bool built = kiln_case_build(self, ret, &err) >= 0;

    if (!built)
        kiln_case_fail_with(self, &err);
    return built;
}

void kiln_case_close(KilnCaseInstance *built)
{
    kiln_instance_free(built->instance);
    kiln_config_free(built->config);
    *built = (KilnCaseInstance) { 0 };
}

const char *kiln_case_missing(KilnCase *self)
{
    const KilnField *field = self->component->fields;

    for (; field != NULL && field->type != KILN_TYPE_END; field++)
        if (field->value == NULL && field->renamed == NULL && field->type != KILN_TYPE_STRUCT &&
            !kiln_case_gives(self, field->name))
            return field->name;
    return NULL;
}
