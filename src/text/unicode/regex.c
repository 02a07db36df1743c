/* Compiles patterns with PCRE2 after writing out the classes in which Oniguruma differs: \s, \w, \h
 * and ^ and $, which match at every line. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/unicode/regex.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/text.h"

struct KilnRegex {
    pcre2_code *code;
};

#define SPACES                                                                                     \
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"        \
    "\\x{205f}\\x{3000}"
#define WORDS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* Append `class`, in brackets unless it is in some already. */
static void put_class(KilnText *text, const char *class, bool negated, bool in_class)
{
    if (in_class)
        kiln_text_append(text, class);
    else
        kiln_text_printf(text, "[%s%s]", negated ? "^" : "", class);
}

/* Rewrite an escape of Oniguruma's syntax; false: PCRE2 reads it in the same way. */
static bool translate_escape(KilnText *text, char c, bool in_class)
{
    switch (c) {
    case 's':
        put_class(text, SPACES, false, in_class);
        return true;
    case 'w':
        put_class(text, WORDS, false, in_class);
        return true;
    case 'h':
        put_class(text, "0-9a-fA-F", false, in_class);
        return true;
    case 'S':
    case 'W':
    case 'H':
        if (in_class)
            return false; /* PCRE2's own class: nothing else can be negated in brackets */
        put_class(text, c == 'S' ? SPACES : c == 'W' ? WORDS : "0-9a-fA-F", true, false);
        return true;
    default:
        return false;
    }
}

static void translate(const char *pattern, KilnText *ret)
{
    int depth = 0; /* of brackets */

    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0') {
            p++;
            if (!translate_escape(ret, *p, depth > 0)) {
                kiln_text_char(ret, '\\');
                kiln_text_char(ret, *p);
            }
            continue;
        }
        if (*p == '[')
            depth++;
        else if (*p == ']' && depth > 0)
            depth--;
        kiln_text_char(ret, *p);
    }
}

KilnStatus kiln_regex_new(const char *pattern, bool literal, KilnRegex **ret, KilnError *err)
{
    const uint32_t flags = PCRE2_UTF | PCRE2_NO_UTF_CHECK |
                           (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    KilnRegex *regex = calloc(1, sizeof(*regex));
    KilnText text = { 0 };
    PCRE2_SIZE offset = 0;
    int code = 0;

    if (literal)
        kiln_text_append(&text, pattern);
    else
        translate(pattern, &text);
    if (regex == NULL || text.failed) {
        free(regex);
        kiln_text_release(&text);
        return kiln_error_nomem(err, strlen(pattern));
    }
    regex->code = pcre2_compile((PCRE2_SPTR)(text.data != NULL ? text.data : ""), text.length,
                                flags, &code, &offset, NULL);
    kiln_text_release(&text);
    if (regex->code == NULL) {
        unsigned char why[128] = "";

        free(regex);
        pcre2_get_error_message(code, why, sizeof(why));
        return kiln_error_set(err, KILN_E_SYNTAX,
                              "the pattern `%.200s` is no regular expression: %s", pattern,
                              (const char *)why);
    }
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* without it, matching is slower */
    *ret = regex;
    return KILN_OK;
}

void kiln_regex_free(KilnRegex *regex)
{
    if (regex != NULL)
        pcre2_code_free(regex->code);
    free(regex);
}

KilnStatus kiln_regex_find(const KilnRegex *regex, const char *text, size_t n, size_t from,
                           bool *ret_found, size_t *ret_begin, size_t *ret_end, KilnError *err)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(regex->code, NULL);

    if (data == NULL)
        return kiln_error_nomem(err, 64);
    const int count = pcre2_match(regex->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK, data,
                                  NULL);
    if (count >= 0) {
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(data);

        *ret_begin = span[0];
        *ret_end = span[1];
    }
    pcre2_match_data_free(data);
    if (count < 0 && count != PCRE2_ERROR_NOMATCH) {
        unsigned char why[128] = "";

        pcre2_get_error_message(count, why, sizeof(why));
        return kiln_error_set(err, KILN_E_RANGE, "searching a regular expression failed: %s",
                              (const char *)why);
    }
    *ret_found = count >= 0;
    return KILN_OK;
}
