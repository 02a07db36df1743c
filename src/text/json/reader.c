/* Typed access to the keys of a tokenizer.json. */
#include "text/json/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "text/unicode/characters.h"

KilnStatus kiln_json_part_fail(const KilnJsonPart *part, const char *key, const char *format, ...)
{
    KilnText text = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    kiln_error_set(part->err, KILN_E_FORMAT, "%s: %s%s%s: %s", part->file, part->path,
                   *part->path != '\0' && *key != '\0' ? "." : "", key,
                   text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return KILN_E_FORMAT;
}

static bool in_list(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

KilnStatus kiln_json_part_keys(const KilnJsonPart *part, const char *keys)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)part->object, key, value)
    {
        if (!in_list(keys, key) && !json_is_null(value))
            return kiln_json_part_fail(part, key, "kiln does not know this key; expected one of %s",
                                       keys);
    }
    return KILN_OK;
}

KilnStatus kiln_json_part_flag(const KilnJsonPart *part, const char *key, bool *ret)
{
    const json_t *value = json_object_get(part->object, key);

    if (value == NULL || json_is_null(value))
        return KILN_OK;
    if (!json_is_boolean(value))
        return kiln_json_part_fail(part, key, "expected true or false");
    *ret = json_is_true(value);
    return KILN_OK;
}

KilnStatus kiln_json_part_count(const KilnJsonPart *part, const char *key, int64_t *ret)
{
    const json_t *value = json_object_get(part->object, key);

    if (value == NULL || json_is_null(value))
        return KILN_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return kiln_json_part_fail(part, key, "expected a whole number, 0 or more");
    *ret = json_integer_value(value);
    return KILN_OK;
}

KilnStatus kiln_json_part_text(const KilnJsonPart *part, const char *key, bool required, char **ret)
{
    const json_t *value = json_object_get(part->object, key);

    if (!required && (value == NULL || json_is_null(value)))
        return KILN_OK;
    if (!json_is_string(value))
        return kiln_json_part_fail(part, key, "expected a text");
    if (strlen(json_string_value(value)) != json_string_length(value))
        return kiln_json_part_fail(part, key, "holds U+0000, which kiln does not take here");
    char *copy = kiln_strdup(json_string_value(value));
    if (copy == NULL)
        return kiln_error_nomem(part->err, json_string_length(value));
    free(*ret);
    *ret = copy;
    return KILN_OK;
}

KilnStatus kiln_json_part_character(const KilnJsonPart *part, const char *key, char ret[8])
{
    const json_t *value = json_object_get(part->object, key);
    const char *text = json_string_value(value);

    if (text == NULL || kiln_utf8_count(text, json_string_length(value)) != 1 || *text == '\0')
        return kiln_json_part_fail(part, key, "expected a single character");
    snprintf(ret, 8, "%s", text);
    return KILN_OK;
}

KilnStatus kiln_json_part_pattern(const KilnJsonPart *part, const char *key, KilnRegex **ret)
{
    const json_t *value = json_object_get(part->object, key);
    const char *text = json_string_value(json_object_get(value, "String"));
    const char *regex = json_string_value(json_object_get(value, "Regex"));
    KilnError why = { 0 };

    if (text == NULL && regex == NULL)
        return kiln_json_part_fail(part, key,
                                   "expected {\"String\": TEXT} or {\"Regex\": PATTERN}");
    KilnStatus status = kiln_regex_new(text != NULL ? text : regex, text != NULL, ret, &why);
    return status == KILN_E_SYNTAX ? kiln_json_part_fail(part, key, "%s", why.text)
           : status < 0            ? kiln_error_nomem(part->err, 0)
                                   : KILN_OK;
}

KilnStatus kiln_json_part_choice(const KilnJsonPart *part, const char *key,
                                 const char *const *names, int *ret)
{
    const char *text = json_string_value(json_object_get(part->object, key));
    KilnText list = { 0 };
    size_t n = 0;

    while (names[n] != NULL && (text == NULL || strcmp(text, names[n]) != 0))
        n++;
    if (names[n] != NULL) {
        *ret = (int)n;
        return KILN_OK;
    }
    for (size_t i = 0; i < n; i++)
        kiln_text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    kiln_json_part_fail(part, key, "kiln has no `%s`; expected one of %s",
                        text != NULL ? text : "(nothing)", list.data != NULL ? list.data : "");
    kiln_text_release(&list);
    return KILN_E_FORMAT;
}

KilnStatus kiln_json_part_steps(const KilnJsonPart *part, const char *key, const char *list,
                                KilnJsonStep *read, void *ctx)
{
    const json_t *object = json_object_get(part->object, key);
    char path[256];
    KilnStatus status = KILN_OK;

    snprintf(path, sizeof(path), "%s%s%s", part->path, *part->path != '\0' ? "." : "", key);
    const KilnJsonPart step = { part->file, path, object, part->err };
    if (object == NULL || json_is_null(object))
        return KILN_OK;
    if (!json_is_object(object))
        return kiln_json_part_fail(part, key, "expected an object");
    const char *type = json_string_value(json_object_get(object, "type"));
    if (type == NULL || strcmp(type, "Sequence") != 0)
        return read(&step, ctx);
    const json_t *entries = json_object_get(object, list);
    if (!json_is_array(entries))
        return kiln_json_part_fail(&step, list, "expected a list");
    for (size_t i = 0; i < json_array_size(entries) && status >= 0; i++) {
        char entry[32];
        json_t *whole = json_object(); /* so that an entry may be a Sequence, too */

        snprintf(entry, sizeof(entry), "%s[%zu]", list, i);
        if (whole == NULL || json_object_set(whole, entry, json_array_get(entries, i)) < 0) {
            json_decref(whole);
            return kiln_error_nomem(part->err, 64);
        }
        const KilnJsonPart inner = { part->file, path, whole, part->err };
        status = kiln_json_part_steps(&inner, entry, list, read, ctx);
        json_decref(whole);
    }
    return status;
}
