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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *near_name(const char *word, size_t length, const char *const *names, size_t n)
{
    char name[32];

    if (length >= sizeof(name))
        return NULL;
    memcpy(name, word, length);
    name[length] = '\0';
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return NULL;
    return kiln_nearest(name, names, n);
}

/* A header that is nearly one, or nearly one of the words that mean a place, would be
 * taken for a comment or for a key of that name. */
static KilnStatus check_names(const char *const words[2], const size_t lengths[2], KilnError *err)
{
    static const char *const headers[] = { "@package" };
    static const char *const places[] = { "_global_", "_group_", "_name_", "_here_" };
    const char *near = near_name(words[0], lengths[0], headers, 1);

    const char *dot = memchr(words[1], '.', lengths[1]); /* _global_.a.b */
    size_t first = dot != NULL ? (size_t)(dot - words[1]) : lengths[1];

    if (near == NULL && words[1][0] == '_')
        near = near_name(words[1], first, places, KILN_COUNT(places));
    if (near == NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_KEY, "header '# %.*s %.*s': did you mean '%s'?",
                          (int)lengths[0], words[0], (int)lengths[1], words[1], near);
}

/* The words of one header line behind '#'. */
static KilnStatus header_line(KilnSearch *search, KilnConfigFile *file, const char *line,
                              size_t size, int number, KilnError *err)
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
    KilnOrigin at = { file->source, number, 1 };
    if (n != 2) {
        kiln_error_set(err, KILN_E_SYNTAX,
                       "header '# %.*s': expected one word, as in '# @package _global_' or "
                       "'# @package model.optimizer'",
                       (int)size, line);
        return kiln_error_at(err, &at);
    }
    if (check_names(words, lengths, err) < 0)
        return kiln_error_at(err, &at);
    if (lengths[0] == strlen("@package") && memcmp(words[0], "@package", lengths[0]) == 0) {
        file->package = kiln_arena_strndup(search->arena, words[1], lengths[1]);
        if (file->package == NULL)
            return kiln_error_nomem(err, lengths[1]);
        file->package = kiln_own_path(search->arena, file->package);
    }
    return KILN_OK;
}

/* "# @package NAME" in the lines above everything else. */
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
        const char *p = text;

        if (stop == NULL)
            stop = end;
        while (p < stop && is_blank(*p))
            p++;
        if (p < stop) {
            if (*p != '#')
                break;
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

/* A file of a size that a config can have. */
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
