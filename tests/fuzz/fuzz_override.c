/* Fuzzes the override grammar: each line is an argument. */
#include "fuzz.h"

#include "config/override/override.h"
#include "config/yaml/yaml_reader.h"
#include "config/yaml/yaml_writer.h"

/* The value reads back from YAML as the same value, as .kiln/config.yaml needs it. */
static void write_value(KilnArena *arena, const KilnConfigNode *value)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text };
    KilnMaker maker = { .arena = arena, .origin = { .source = "written" } };
    KilnConfigNode *again = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_write_node(&writer, value, &err);

    fuzz_check_message(status, &err);
    if (status >= 0 && !text.failed) {
        status = kiln_yaml_read(&maker, text.data, text.length, false, &again, &err);
        fuzz_require(status >= 0, err.text, text.data);
        fuzz_require(again != NULL && fuzz_same(value, again), "reads back otherwise", text.data);
    }
    kiln_text_release(&text);
}

static void parse(const char *text, size_t number)
{
    KilnArena arena = { 0 };
    KilnOverride override = { 0 };
    KilnError err = { 0 };
    KilnStatus status = kiln_override_read(&arena, text, number, &override, &err);

    if (status >= 0 && override.problem != NULL) {
        err = *override.problem;
        status = err.status;
    }
    fuzz_check_message(status, &err);
    if (status >= 0) {
        fuzz_require(override.key != NULL && *override.key != '\0', "no key", text);
        fuzz_require(override.value != NULL || override.kind == KILN_OVERRIDE_DELETE, "no value",
                     text);
        if (override.value != NULL && !override.sweep)
            write_value(&arena, override.value);
    }
    kiln_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    size_t number = 1;

    for (char *line = text, *end; line != NULL; line = end, number++) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        parse(line, number);
    }
    free(text);
    return 0;
}
