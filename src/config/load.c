/* Loads one config file: header, defaults list, content. */
#include "config/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "config/mark.h"
#include "config/reader.h"
#include "config/state.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The words of one header line behind '#'. */
static KilnStatus header_line(KilnSearch *search, KilnFile *file, const char *line, size_t size,
                              int number, KilnError *err)
{
    const char *words[3] = { NULL };
    size_t lengths[3] = { 0 }, n = 0;

    for (size_t i = 0; i < size && n < 3;) {
        size_t start;

        while (i < size && is_blank(line[i]))
            i++;
        for (start = i; i < size && !is_blank(line[i]);)
            i++;
        if (i > start) {
            words[n] = line + start;
            lengths[n++] = i - start;
        }
    }
    if (n != 2)
        return kiln_error_set(err, KILN_E_SYNTAX,
                              "%s:%d:1: header '# %.*s': expected one word, as in "
                              "'# @package _global_' or '# @package model.optimizer'",
                              file->source, number, (int)size, line);
    if (lengths[0] == strlen("@package") && memcmp(words[0], "@package", lengths[0]) == 0) {
        file->package = kiln_arena_strndup(search->arena, words[1], lengths[1]);
        if (file->package == NULL)
            return kiln_error_nomem(err, lengths[1]);
        file->package = kiln_own_path(search->arena, file->package);
    }
    return KILN_OK;
}

/* "# @package NAME" in the lines above everything else. */
static KilnStatus read_header(KilnSearch *search, KilnFile *file, const char *text, size_t size,
                              KilnError *err)
{
    const char *end = text + size;
    KilnStatus status = KILN_OK;
    int number = 1;

    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (; text < end && status >= 0; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *p = text;

        if (stop == NULL)
            stop = end;
        while (p < stop && is_blank(*p))
            p++;
        if (p < stop) {
            if (*p != '#')
                break;
            while (p < stop && *p == '#')
                p++;
            while (p < stop && is_blank(*p))
                p++;
            if (p == stop || *p != '@')
                break;
            status = header_line(search, file, p, (size_t)(stop - p), number, err);
        }
        text = stop < end ? stop + 1 : end;
    }
    return status;
}

static KilnStatus take_defaults(KilnFile *file, KilnError *err)
{
    KilnEntry *entry = file->content->kind == KILN_NODE_MAP
                           ? kiln_node_entry(file->content, "defaults")
                           : NULL;

    if (entry == NULL)
        return KILN_OK;
    if (entry->value->kind != KILN_NODE_LIST) {
        kiln_error_set(err, KILN_E_TYPE, "defaults: expected a list like '- model: resnet', got %s",
                       kiln_node_kind_name(entry->value));
        return kiln_error_at(err, &entry->value->origin);
    }
    if (entry->value->mark != KILN_MARK_NONE) {
        kiln_error_set(err, KILN_E_TYPE,
                       "defaults: %s can't stand here, the defaults list is not merged; entries "
                       "change others by 'override GROUP: OPTION'",
                       kiln_mark_tag(entry->value->mark));
        return kiln_error_at(err, &entry->value->origin);
    }
    file->defaults = entry->value;
    file->defaults_origin = entry->key_origin;
    file->defaults->parent = NULL;
    kiln_node_remove(file->content, entry);
    return KILN_OK;
}

KilnStatus kiln_file_parse(KilnSearch *search, KilnFile *file, const char *text, size_t size,
                           bool component, KilnError *err)
{
    KilnMaker maker = { .arena = search->arena,
                        .origin = { .source = file->source },
                        .layer = component ? KILN_LAYER_DEFAULT : KILN_LAYER_FILE };
    KilnStatus status = read_header(search, file, text, size, err);

    if (status >= 0)
        status = kiln_yaml_read(&maker, text, size, component, &file->content, err);
    if (status < 0)
        return status;
    /* An empty file, or one with comments only, says nothing: an empty mapping. */
    if (file->content == NULL ||
        (file->content->kind == KILN_NODE_SCALAR && file->content->scalar == KILN_SCALAR_NULL))
        file->content = kiln_node_new(&maker, KILN_NODE_MAP);
    if (file->content == NULL)
        return kiln_error_nomem(err, sizeof(*file->content));
    if (file->content->kind == KILN_NODE_SCALAR) {
        kiln_error_set(err, KILN_E_TYPE, "expected a mapping (key: value), got %s",
                       kiln_node_kind_name(file->content));
        return kiln_error_at(err, &file->content->origin);
    }
    return take_defaults(file, err);
}

KilnStatus kiln_file_load(KilnSearch *search, KilnFile *file, KilnError *err)
{
    char *text = NULL;
    size_t size = 0;
    KilnStatus status;

    /* A pipe would block, a device never end. */
    if (!kiln_is_file(file->source))
        return kiln_error_set(err, KILN_E_IO, "%s: is %s, not a file", file->source,
                              kiln_is_dir(file->source) ? "a folder" : "something special");
    status = kiln_file_read(file->source, KILN_YAML_BYTES, &text, &size, err);
    if (status >= 0)
        status = kiln_file_parse(search, file, text, size, false, err);
    free(text);
    return status;
}
