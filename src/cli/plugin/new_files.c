/* Makes the files of a new component: its kind's component of the manual under another name, the
 * config file that selects it, a Makefile and a test. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/plugin/new_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

typedef struct Maker {
    const KilnNewKind *kind;
    const char *name; /* of the new component */
    const char *old;  /* of the manual's */
    KilnArena *arena;
    bool broken; /* a template does not begin as expected */
} Maker;

void kiln_plugin_append(KilnText *text, const char *from, const char *name)
{
    for (; *from != '\0'; from++) {
        if (*from == '%')
            kiln_text_append(text, name);
        else
            kiln_text_char(text, *from);
    }
}

/* ---- Templates ------------------------------------------------------------------------------ */

/* KIND/`file` of the manual; "" is none. */
static const char *template_of(Maker *maker, const char *file)
{
    const size_t n = strlen(maker->kind->name);

    for (size_t i = 0; i < kiln_component_templates_count; i++) {
        const char *path = kiln_component_templates[i].path;

        if (strncmp(path, maker->kind->name, n) == 0 && path[n] == '/' &&
            strcmp(path + n + 1, file) == 0)
            return kiln_component_templates[i].text;
    }
    maker->broken = true;
    return "";
}

/* What stands between `before`, with which `text` begins, and `after`. */
static const char *between(Maker *maker, const char *text, const char *before, const char *after)
{
    const char *end = kiln_starts_with(text, before) ? strstr(text + strlen(before), after) : NULL;

    if (end == NULL) {
        maker->broken = true;
        return "";
    }
    return kiln_arena_strndup(maker->arena, text + strlen(before),
                              (size_t)(end - text) - strlen(before));
}

static bool is_inner(char c)
{
    return kiln_is_letter(c) || kiln_is_digit(c);
}

/* The text with the new name for each word that is the old one. */
static const char *renamed(Maker *maker, const char *text)
{
    const size_t n = strlen(maker->old);
    KilnText out = { 0 };

    for (const char *at = text; *at != '\0';) {
        const bool begins = at == text || !is_inner(at[-1]);

        if (n > 0 && begins && strncmp(at, maker->old, n) == 0 && !is_inner(at[n])) {
            kiln_text_append(&out, maker->name);
            at += n;
        } else {
            kiln_text_char(&out, *at++);
        }
    }
    return kiln_text_to_arena(&out, maker->arena);
}

/* ---- Files ---------------------------------------------------------------------------------- */

/* The folder of kiln.h that belongs to this program, of a prefix or a checkout, where pkg-config
 * does not look. NULL: there is none, or a makefile can't have its path. */
static const char *own_headers(KilnArena *arena)
{
    static const char *const places[] = { "../include", "../../src" };
    char program[PATH_MAX], folder[PATH_MAX];

    if (!kiln_link_read("/proc/self/exe", program, sizeof(program)))
        return NULL;
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < KILN_COUNT(places); i++) {
        const char *header = kiln_arena_printf(arena, "%s/%s/kiln.h", program, places[i]);

        if (header == NULL || realpath(header, folder) == NULL)
            continue;
        *strrchr(folder, '/') = '\0';
        const bool usual = strncmp(folder, "/usr/", 5) == 0;
        const bool odd = strpbrk(folder, " \t#$%()*,:;?[\\'\"") != NULL;
        return usual || odd ? NULL : kiln_arena_strdup(arena, folder);
    }
    return NULL;
}

static const char *makefile(Maker *maker)
{
    const char *own = own_headers(maker->arena),
               *installed = "$(shell pkg-config --cflags kiln 2>/dev/null)";
    const char *flags = own != NULL
                            ? kiln_arena_printf(maker->arena, "$(if $(wildcard %s/kiln.h),-I%s,%s)",
                                                own, own, installed)
                            : installed;

    return kiln_arena_printf(
        maker->arena,
        "# Builds %s.so with the headers of kiln. Others: make KILN=-I/DIR/OF/kiln/src\n"
        "KILN ?= %s\n"
        "CFLAGS = -O2 -Wall -Wextra\n"
        "\n"
        "%s.so: %s.c\n"
        "\t@echo '#include <kiln.h>' | cc $(KILN) -E - >/dev/null 2>&1 || { echo 'This needs a C "
        "compiler and kiln.h: install gcc and libkiln-dev (Debian), or name the folder of kiln.h: "
        "make KILN=-I/DIR' >&2; exit 1; }\n"
        "\tcc -std=c17 $(CFLAGS) -fPIC -shared -fvisibility=hidden $(KILN) -o $@ $< -lm\n"
        "\n"
        "test: %s.so\n"
        "\tsh test.sh\n"
        "\n"
        ".PHONY: test\n",
        maker->name, flags != NULL ? flags : installed, maker->name, maker->name, maker->name);
}

/* A command of the test: `train --plugin ./NAME.so SELECT REST MORE`. */
static void put_command(const Maker *maker, const char *more, KilnText *text)
{
    const KilnNewKind *kind = maker->kind;

    kiln_text_printf(text, "\"$train\" --plugin ./%s.so ", maker->name);
    kiln_plugin_append(text, kind->select, maker->name);
    kiln_text_printf(text, " \\\n    %s batch_size=16 trainer.max_epochs=2 \\\n    ", kind->rest);
    kiln_plugin_append(text, more, maker->name);
    kiln_text_char(text, '\n');
}

static const char *test_script(Maker *maker)
{
    const KilnNewKind *kind = maker->kind;
    KilnText text = { 0 };

    kiln_text_printf(
        &text,
        "#!/bin/sh\n"
        "# Builds %s, trains with it for a moment, and sweeps: sh test.sh\n"
        "set -eu\n"
        "cd \"$(dirname \"$0\")\"\n"
        "\n"
        "# What the sweep varies, an option that it begins with: change it with yours.\n"
        "set -- ",
        maker->name);
    kiln_plugin_append(&text, kind->vary, maker->name);
    kiln_text_printf(&text,
                     "\n\n"
                     "train=${TRAIN:-train}\n"
                     "command -v \"$train\" >/dev/null || { echo \"test.sh: no program $train: "
                     "TRAIN=/DIR/train sh test.sh names it\" >&2; exit 1; }\n"
                     "make -s %s.so\n"
                     "out=$(mktemp -d)\n"
                     "trap 'rm -rf \"$out\"' EXIT\n%s\n",
                     maker->name, kind->before != NULL ? kind->before : "");
    put_command(maker, "kiln.run.dir=\"$out/run\"", &text);
    kiln_text_append(&text, "test -f \"$out/run/summary.json\"\n\n# One run for each value.\n");
    put_command(maker, "-m \"$@\" kiln.sweep.dir=\"$out/sweep\"", &text);
    kiln_text_append(&text, "test -f \"$out/sweep/results.json\"\n");
    if (kind->after != NULL) {
        kiln_text_char(&text, '\n');
        kiln_plugin_append(&text, kind->after, maker->name);
    }
    return kiln_text_to_arena(&text, maker->arena);
}

/* The config file: its first line names its path and says what it is. */
static void make_conf(Maker *maker, KilnNewFile *ret)
{
    const char *text = renamed(maker, template_of(maker, "conf.yaml"));
    const char *path = between(maker, text, "# ", ": ");

    if (path == NULL)
        return;
    ret->path = path;
    ret->text = kiln_arena_printf(maker->arena, "# %s", text + strlen(path) + strlen("# : "));
    ret->purpose = "selects it";
}

KilnStatus kiln_plugin_files(const KilnNewKind *kind, const char *name, KilnArena *arena,
                             KilnNewFile ret[KILN_NEW_FILES], KilnError *err)
{
    Maker maker = { .kind = kind, .name = name, .arena = arena };
    const char *code = template_of(&maker, "component.c");

    maker.old = between(&maker, code, "/* ", ".c: ");
    if (maker.old != NULL && !maker.broken) {
        ret[0] = (KilnNewFile) { kiln_arena_printf(arena, "%s.c", name), renamed(&maker, code),
                                 "the component" };
        ret[1] = (KilnNewFile) { "Makefile", makefile(&maker), "builds it" };
        make_conf(&maker, &ret[2]);
        ret[3] = (KilnNewFile) { "test.sh", test_script(&maker), "builds it, trains, sweeps" };
    }
    if (arena->failed)
        return kiln_error_nomem(err, strlen(name));
    if (maker.broken)
        return kiln_error_set(err, KILN_E_INTERNAL, "no template of a %s", kind->name);
    return KILN_OK;
}
