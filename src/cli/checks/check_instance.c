/* Checks of a component by itself: its options, building and releasing it, its memory. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "cli/checks/checks.h"
#include "cli/checks/leak.h"
#include "registry/instance.h"
#include "registry/registry.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* Two options of one table that share bytes: setting one changes the other. */
static void check_overlap(KilnCase *self, const KilnField *fields)
{
    for (const KilnField *a = fields; a->type != KILN_TYPE_END; a++)
        for (const KilnField *b = fields; b != a; b++)
            if (a->renamed == NULL && b->renamed == NULL && a->offset < b->offset + b->size &&
                b->offset < a->offset + a->size)
                kiln_case_fail(self, "give each option a member of its own",
                               "options %s and %s are the same bytes of the options struct",
                               b->name, a->name);
}

/* What --help prints on one line. */
static void check_line(KilnCase *self, const char *of, const char *text)
{
    if (strchr(text, '\n') != NULL)
        kiln_case_fail(self, "write it as one line: help wraps it", "the text of %s has a line end",
                       of);
    else if (text[0] == ' ' || text[strlen(text) - 1] == ' ')
        kiln_case_fail(self, "remove the blanks", "the text of %s begins or ends with a blank", of);
}

static size_t check_fields(KilnCase *self, const KilnField *fields)
{
    size_t n = 0;

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++, n++) {
        check_line(self, f->name, f->help);
        if (f->fields != NULL)
            n += check_fields(self, f->fields);
    }
    if (fields != NULL)
        check_overlap(self, fields);
    return n;
}

void kiln_contract_options(KilnCase *self)
{
    KilnError err = { 0 };

    if (kiln_component_check(self->component, &err) < 0)
        return kiln_case_fail_with(self, &err);
    check_line(self, "its summary", self->component->summary);
    const size_t n = check_fields(self, self->component->fields);
    kiln_case_pass(self, "%zu option%s: names, help, defaults, ranges", n, n == 1 ? "" : "s");
}

/* ---- Building -------------------------------------------------------------------------------- */

/* Release an instance of zeroes, as kiln does where init failed at its start. */
static void release_zeroed(const KilnInstance *like)
{
    KilnInstance zeroed = *like;

    if (like->component->release == NULL)
        return;
    zeroed.state = like->state != NULL ? calloc(1, like->component->state_size) : NULL;
    zeroed.binding = NULL;
    kiln_call_enter(&zeroed, "release");
    if (zeroed.state != NULL || like->state == NULL)
        like->component->release(&zeroed);
    kiln_call_leave();
    free(zeroed.state);
}

void kiln_contract_building(KilnCase *self)
{
    const char *missing = kiln_case_missing(self), *kind = kiln_kind_name(self->component->kind);
    char advice[256];
    KilnCaseInstance built;

    if (missing != NULL) {
        snprintf(advice, sizeof(advice), "add %s.%s=VALUE to the command", kind, missing);
        return kiln_case_skip(self, advice, "option %s is required", missing);
    }
    if (!kiln_case_open(self, &built))
        return;
    release_zeroed(built.instance);
    kiln_case_close(&built);
    kiln_case_pass(self, "built and released, also without init");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static bool build_once(KilnCase *self)
{
    KilnCaseInstance built;

    if (!kiln_case_open(self, &built))
        return false;
    kiln_case_close(&built);
    return true;
}

void kiln_contract_leaks(KilnCase *self)
{
    enum { ROUNDS = 12 };
    KilnLeak leak = { 0 };

    for (int i = 0; i < ROUNDS; i++) {
        if (!build_once(self))
            return;
        kiln_leak_note(&leak);
    }
    const int64_t bytes = kiln_leak_bytes(&leak);
    if (!kiln_leak_is_known(&leak))
        kiln_case_skip(self, "", "this allocator does not count what is allocated");
    else if (bytes > 0)
        kiln_case_fail(self, "free in `release` what `init` allocates",
                       "%lld bytes more after each time that it is built and released",
                       (long long)bytes);
    else
        kiln_case_pass(self, "built and released %d times", ROUNDS);
}
