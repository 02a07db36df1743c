/* kiln doctor: what this machine has, and which of it kiln uses. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <gnu/libc-version.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/families.h"
#include "base/json.h"
#include "base/system/machine.h"
#include "cli/commands/commands.h"
#include "cli/doctor/machine.h"
#include "cli/screen/screen.h"
#include "data/records/parquet.h"
#include "kiln/tools/clock.h"

enum { COLUMN = 26 };

/* {section: {name: text}}, in the order in which they are added. */
typedef struct Report {
    json_t *sections;
    json_t *section; /* the last one, borrowed */
    bool failed;     /* memory ran out */
} Report;

static void add_section(Report *report, const char *name)
{
    report->section = json_object();
    if (json_object_set_new(report->sections, name, report->section) < 0)
        report->failed = true;
}

static void add(Report *report, const char *name, const char *format, ...) KILN_PRINTF(3, 4);
static void add(Report *report, const char *name, const char *format, ...)
{
    KilnText text = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    if (report->failed || text.failed ||
        json_object_set_new(report->section, name, kiln_json_text(text.data)) < 0)
        report->failed = true;
    kiln_text_release(&text);
}

/* ---- Sections -------------------------------------------------------------------------- */

static void add_caches(Report *report)
{
    const KilnCaches caches = kiln_caches_read("");
    char name[32], size[KILN_UNIT_TEXT];

    for (int i = 0; i < KILN_CACHE_LEVELS; i++) {
        if (caches.bytes[i] == 0)
            continue;
        snprintf(name, sizeof(name), "level %d cache", i + 1);
        kiln_bytes_text((double)caches.bytes[i], size);
        if (caches.shared[i] > 1)
            add(report, name, "%s, shared by %d processors", size, caches.shared[i]);
        else
            add(report, name, "%s", size);
    }
}

static void add_processor(Report *report, KilnCpuLevel level, bool capped)
{
    char model[256], list[256] = "";
    struct utsname system;

    add_section(report, "processor");
    kiln_processor_model("", model, sizeof(model));
    add(report, "model", "%s", model[0] != '\0' ? model : "unknown");
    if (uname(&system) == 0)
        add(report, "architecture", "%s", system.machine);
    for (int i = 0; i <= (int)kiln_cpu_level_highest(); i++) {
        const size_t used = strlen(list);

        snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "",
                 kiln_cpu_level_name((KilnCpuLevel)i));
    }
    add(report, "features", "%s", list);
    add(report, "in use", "%s, %s", kiln_cpu_level_name(level),
        capped                              ? "the cap that KILN_ISA sets"
        : level == kiln_cpu_level_highest() ? "the highest"
                                            : "the fastest");
    add_caches(report);
}

static void append_kernels(KilnText *text, const char *kernels, KilnCpuLevel needs)
{
    kiln_text_append(text, kernels);
    if (strcmp(kernels, kiln_cpu_level_name(needs)) != 0)
        kiln_text_printf(text, " (%s)", kiln_cpu_level_name(needs));
}

/* The family's kernels with the level that each needs: those in use, what they fall back to, and
 * those that need a higher level. */
static void add_family(Report *report, const KilnCpuFamilyInfo *info, KilnCpuLevel level)
{
    KilnText text = { 0 };
    const char *between = "; not in use: ";

    for (int i = (int)level; i >= 0; i--) {
        if (info->kernels[i] == NULL)
            continue;
        kiln_text_append(&text, text.length > 0 ? ", else " : "");
        append_kernels(&text, info->kernels[i], (KilnCpuLevel)i);
    }
    for (int i = (int)level + 1; i <= KILN_CPU_TOP; i++) {
        if (info->kernels[i] == NULL)
            continue;
        kiln_text_append(&text, between);
        between = ", ";
        append_kernels(&text, info->kernels[i], (KilnCpuLevel)i);
    }
    report->failed = report->failed || text.failed;
    add(report, info->name, "%s", text.failed ? "" : text.data);
    kiln_text_release(&text);
}

static void add_threads(Report *report)
{
    const KilnProcessors processors = kiln_processors_here();
    char why[128], available[KILN_UNIT_TEXT], limit[KILN_UNIT_TEXT];
    KilnMemory memory;

    add_section(report, "threads and memory");
    kiln_processors_why(&processors, why, sizeof(why));
    add(report, "threads", "%d%s%s", processors.threads, why[0] != '\0' ? ": " : "", why);
    add(report, "processors", "%d online, %d allowed, %d cores", processors.online,
        processors.allowed, processors.cores);
    if (kiln_memory_read("", &memory))
        add(report, "memory", "%s, %s free", kiln_bytes_text((double)memory.limit, limit),
            kiln_bytes_text((double)memory.available, available));
}

typedef struct Libraries {
    Report *report;
    int left;
} Libraries;

/* Adds a loaded library by the file that its links lead to, whose name has the version. */
static int add_library(struct dl_phdr_info *library, size_t size, void *context)
{
    Libraries *libraries = context;
    char *path = realpath(library->dlpi_name, NULL); /* NULL: the program, or the kernel's own */
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    (void)size;
    if (slash != NULL && libraries->left-- > 0)
        add(libraries->report, slash + 1, "%s", path);
    free(path);
    return 0;
}

/* Only those that the program itself needs; they are loaded before what they need. */
static void add_libraries(Report *report)
{
    Libraries libraries = { report, 0 };

    add_section(report, "libraries");
    add(report, "kiln", "%s, plugins: ABI %u", KILN_VERSION, KILN_ABI);
    add(report, "glibc", "%s", gnu_get_libc_version());
    if (kiln_parquet_version(NULL) != NULL)
        add(report, "Arrow", "%s", kiln_parquet_version(NULL));
    add(report, "OpenBLAS", "%s", kiln_blas_load() ? kiln_blas_version() : "not installed");
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        libraries.left += entry->d_tag == DT_NEEDED;
    dl_iterate_phdr(add_library, &libraries);
}

/* ---- What it tries out ------------------------------------------------------------------- */

static void add_taken(Report *report, const char *name, KilnText *text)
{
    report->failed = report->failed || text->failed;
    add(report, name, "%s", text->failed || text->data == NULL ? "" : text->data);
    kiln_text_clear(text);
}

static void add_parts(Report *report)
{
    KilnText text = { 0 };
    const char *name;

    add_section(report, "parts that need a library");
    for (size_t i = 0; kiln_doctor_part(i, &name, &text); i++)
        add_taken(report, name, &text);
    add_section(report, "folders that can be written");
    for (size_t i = 0; kiln_doctor_folder(i, &name, &text); i++)
        add_taken(report, name, &text);
    kiln_text_release(&text);
}

static KilnStatus add_self_test(Report *report, bool *ret_right, KilnError *err)
{
    KilnSelfTest test;
    char seconds[KILN_UNIT_TEXT];
    const KilnStatus status = kiln_self_test(&test, err);

    add_section(report, "self-test");
    add_taken(report, "kernels", &test.kernels);
    add_taken(report, "bf16 kernels", &test.bf16_kernels);
    add_taken(report, "training", &test.training);
    add(report, "time", "%s", kiln_seconds_text(test.seconds, seconds));
    *ret_right = test.right;
    kiln_self_test_release(&test);
    return status;
}

/* ---- Printing -------------------------------------------------------------------------- */

static int print_page(const Report *report)
{
    KilnPage page = kiln_screen_page();
    const char *heading, *name;
    json_t *section, *text;

    json_object_foreach(report->sections, heading, section)
    {
        kiln_page_heading(&page, "%s", heading);
        json_object_foreach(section, name, text)
        {
            kiln_page_pair(&page, COLUMN, name, "%s", json_string_value(text));
        }
    }
    return kiln_screen_print(&page);
}

static int print_json(const Report *report)
{
    char *text = kiln_json_dump(report->sections, JSON_INDENT(2));
    const bool whole = text != NULL;

    if (whole)
        puts(text);
    free(text);
    return whole ? 0 : -1;
}

static KilnStatus examine(const KilnArgs *args, KilnError *err)
{
    Report report = { .sections = NULL };
    KilnCpuLevel level = KILN_CPU_BASE;
    bool capped = false, right = true;

    if (args->n_words > 0)
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s: doctor takes no words; `kiln doctor --help` lists its flags",
                              args->words[0]);
    KilnStatus status = kiln_cpu_level_choose(&level, &capped, err);

    if (status < 0)
        return status;
    kiln_blas_choose(level, capped);
    report.sections = json_object();
    add_processor(&report, level, capped);
    add_section(&report, "kernels");
    for (int family = 0; family < KILN_CPU_FAMILIES; family++)
        add_family(&report, &kiln_cpu_families[family], level);
    add_threads(&report);
    add_parts(&report);
    add_libraries(&report);
    status = add_self_test(&report, &right, err);
    if (status < 0 || report.failed ||
        (args->json ? print_json(&report) : print_page(&report)) != 0)
        status = kiln_error_nomem(err, 0);
    else if (!right)
        status = kiln_error_set(err, KILN_E_INTERNAL,
                                "the self-test found wrong results: try KILN_ISA=base, and report "
                                "it with the output of `kiln doctor --json`");
    json_decref(report.sections);
    return status;
}

int kiln_command_doctor(KilnArgs *args)
{
    KilnError err = { 0 };
    const KilnStatus status = examine(args, &err);

    return kiln_screen_result(args->command, status, &err);
}
