/* Loads one config file: header, defaults list, content. */
#include "config/defaults/config_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/tree/edit.h"
#include "config/yaml/yaml_reader.h"
#include "config/composed.h"

static const char blanks[] = " \t\r";

/* The word of the list that `word` probably means; NULL when it is one of them, or none. */
static const char *near_word(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return NULL;
    return kiln_nearest(word, words, n);
}

/* A misspelled header would be taken for a comment, a misspelled _global_ for a key. */
static KilnStatus check_header(KilnArena *arena, const char *header, const char *package,
                               KilnError *err)
{
    static const char *const headers[] = { "@package" };
    static const char *const packages[] = { "_global_", "_group_", "_name_", "_here_" };
    const char *first = kiln_arena_strndup(arena, package, strcspn(package, "."));
    const char *near = near_word(header, headers, KILN_COUNT(headers));

    if (first == NULL)
        return kiln_error_nomem(err, 1);
    if (near == NULL && *first == '_')
        near = near_word(first, packages, KILN_COUNT(packages));
    if (near == NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_KEY, "header '# %s %s': did you mean '%s'?", header, package,
                          near);
}

/* The text of one header line after '#': "@package NAME". */
static KilnStatus header_line(KilnSearch *search, KilnConfigFile *file, const char *line,
                              size_t size, int number, KilnError *err)
{
    KilnOrigin at = { file->source, number, 1 };
    char *header = kiln_arena_strndup(search->arena, line, size), *package, *end;

    if (header == NULL)
        return kiln_error_nomem(err, size);
    package = header + strcspn(header, blanks);
    if (*package != '\0')
        *package++ = '\0';
    package += strspn(package, blanks);
    end = package + strcspn(package, blanks);
    if (*package == '\0' || end[strspn(end, blanks)] != '\0') {
        kiln_error_set(err, KILN_E_SYNTAX,
                       "header '# %.*s': expected one word, as in '# @package _global_' or "
                       "'# @package model.optimizer'",
                       (int)size, line);
        return kiln_error_at(err, &at);
    }
    *end = '\0';
    if (check_header(search->arena, header, package, err) < 0)
        return kiln_error_at(err, &at);
    if (strcmp(header, "@package") == 0)
        file->package = kiln_own_path(search->arena, package);
    return KILN_OK;
}

/* Reads "# @package NAME" in the lines before the content. `text` ends with a NUL. */
static KilnStatus read_header(KilnSearch *search, KilnConfigFile *file, const char *text,
                              size_t size, KilnError *err)
{
    const char *end = text + size;
    KilnStatus status = KILN_OK;
    int number = 1;

    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (; text < end && status >= 0; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *p = text + strspn(text, blanks);

        if (stop == NULL)
            stop = end;
        if (*p == '#') {
            p += 1 + strspn(p + 1, blanks);
            if (*p != '@')
                break;
            status = header_line(search, file, p, (size_t)(stop - p), number, err);
        } else if (p < stop) {
            break;
        }
        text = stop < end ? stop + 1 : end;
    }
    return status;
}

static KilnStatus take_defaults(KilnConfigFile *file, KilnError *err)
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
    if (entry->value->mark != KILN_EDIT_NONE) {
        kiln_error_set(err, KILN_E_TYPE,
                       "defaults: %s can't stand here, the defaults list is not merged; entries "
                       "change others by 'override GROUP: OPTION'",
                       kiln_edit_tag(entry->value->mark));
        return kiln_error_at(err, &entry->value->origin);
    }
    file->defaults = entry->value;
    file->defaults_origin = entry->key_origin;
    file->defaults->parent = NULL;
    kiln_node_remove(file->content, entry);
    return KILN_OK;
}

KilnStatus kiln_config_file_parse(KilnSearch *search, KilnConfigFile *file, const char *text,
                                  size_t size, bool component, KilnError *err)
{
    KilnMaker maker = { .arena = search->arena,
                        .origin = { .source = file->source },
                        .layer = component ? KILN_LAYER_DEFAULT : KILN_LAYER_FILE };
    KilnStatus status = read_header(search, file, text, size, err);

    if (status >= 0)
        status = kiln_yaml_read(&maker, text, size, component, &file->content, err);
    if (status < 0)
        return status;
    /* A file without content is an empty mapping. */
    if (file->content == NULL || kiln_node_is_scalar(file->content, KILN_SCALAR_NULL))
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

/* Refuses broken links and files that are too large. */
static KilnStatus check_size(const char *path, KilnError *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return kiln_error_set(err, KILN_E_IO, "%s: is a link that leads nowhere", path);
    if (st.st_size > (off_t)KILN_YAML_BYTES)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: has %.1f MiB, a config at most %u; put data into a file of its "
                              "own, which the config names",
                              path, (double)st.st_size / (1 << 20), KILN_YAML_BYTES >> 20);
    return KILN_OK;
}

KilnStatus kiln_config_file_load(KilnSearch *search, KilnConfigFile *file, KilnError *err)
{
    char *text = NULL;
    size_t size = 0;
    KilnStatus status;

    status = check_size(file->source, err);
    if (status < 0)
        return status;
    status = kiln_file_read(file->source, KILN_YAML_BYTES, &text, &size, err);
    if (status >= 0)
        status = kiln_config_file_parse(search, file, text, size, false, err);
    free(text);
    return status;
}
