/* Fuzzes the YAML reader and the writer: what is read, written and read again is the same. */
#include "fuzz.h"

#include "config/yaml/yaml_reader.h"
#include "config/yaml/yaml_writer.h"

static KilnStatus read_text(KilnArena *arena, const char *text, size_t size, KilnConfigNode **ret,
                            KilnError *err)
{
    KilnMaker maker = { .arena = arena,
                        .origin = { .source = "input.yaml" },
                        .layer = KILN_LAYER_FILE };

    return kiln_yaml_read(&maker, text, size, false, ret, err);
}

static void write_and_read(KilnArena *arena, const KilnConfigNode *node)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text };
    KilnConfigNode *again = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_write_node(&writer, node, &err);

    fuzz_check_message(status, &err);
    if (status >= 0 && !text.failed) {
        status = read_text(arena, text.data, text.length, &again, &err);
        /* Aliases are written out, so what was within the limits may not be any more. */
        if (status != KILN_E_RANGE) {
            fuzz_require(status >= 0, err.text, text.data);
            fuzz_require(again != NULL && fuzz_same(node, again), "reads back otherwise",
                         text.data);
        }
    }
    kiln_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    KilnArena arena = { 0 };
    KilnConfigNode *node = NULL;
    KilnError err = { 0 };
    KilnStatus status = read_text(&arena, text, size, &node, &err);

    fuzz_check_message(status, &err);
    if (status >= 0 && node != NULL)
        write_and_read(&arena, node);
    kiln_arena_release(&arena);
    free(text);
    return 0;
}
