#include "data/tag_check.h"

#include <stdio.h>
#include <string.h>

#include "data/findings.h"
#include "kiln/tools/tag_spans.h"
#include "kiln/tools/text.h"

static bool is_letter_of(KilnString tag, const char *letters)
{
    return tag.length > 1 && (tag.data[1] == '-' || tag.data[1] == '_') &&
           strchr(letters, tag.data[0]) != NULL;
}

static bool same_type(KilnString a, KilnString b)
{
    return a.length == b.length && a.length > 2 &&
           memcmp(a.data + 2, b.data + 2, a.length - 2) == 0;
}

/* An I- or E- whose span has not begun. */
static bool is_stray(const KilnString *tags, int64_t i)
{
    return is_letter_of(tags[i], "IE") &&
           (i == 0 || !is_letter_of(tags[i - 1], "BI") || !same_type(tags[i - 1], tags[i]));
}

static bool has_space(KilnString word)
{
    for (size_t i = 0; i < word.length; i++)
        if (kiln_space_at(word.data + i, word.length - i) > 0)
            return true;
    return false;
}

/* Whether a word is nothing but punctuation. */
static bool is_punctuation(KilnString word)
{
    for (size_t i = 0, n; i < word.length; i += n)
        if (kiln_category_at(word.data + i, word.length - i, &n) != 'P')
            return false;
    return word.length > 0;
}

static int shown(KilnString text)
{
    return text.length < 40 ? (int)text.length : 40;
}

/* "train.conll:17: word 3 \"York\": I-city". */
static void keep(char ret[256], const char *place, KilnString word, KilnString tag, int64_t i)
{
    snprintf(ret, 256, "%.100s: word %lld \"%.*s\": %.*s", place, (long long)i + 1, shown(word),
             word.data, shown(tag), tag.data);
}

static void look_at_span(KilnTagCheck *check, const KilnString *words, const KilnString *tags,
                         const KilnTagSpan *span, const char *place)
{
    check->spans++;
    for (int64_t i = span->first; i <= span->last; i++)
        if (has_space(words[i]) && check->spaces++ == 0)
            keep(check->space, place, words[i], tags[i], i);
    const int64_t at = is_punctuation(words[span->last]) ? span->last : span->first;
    if (is_punctuation(words[at]) && check->punctuated++ == 0)
        keep(check->punctuation, place, words[at], tags[at], at);
}

void kiln_tag_check_add(KilnTagCheck *check, const KilnString *words, const KilnString *tags,
                        int64_t n, const char *place)
{
    KilnSpanFinder finder = { 0 };
    KilnTagSpan span;
    const int64_t before = check->spans;

    check->sentences++;
    check->words += n;
    for (int64_t i = 0; i < n; i++) {
        check->begins += is_letter_of(tags[i], "BS");
        if (is_stray(tags, i) && check->strays++ == 0)
            keep(check->stray, place, words[i], tags[i], i);
        if (kiln_span_next(&finder, tags[i], &span))
            look_at_span(check, words, tags, &span, place);
    }
    if (kiln_span_end(&finder, &span))
        look_at_span(check, words, tags, &span, place);
    check->outside += check->spans == before;
}

/* ---- The report ------------------------------------------------------------------------------ */

static void report(KilnFindings *findings, const char *what, int64_t n, const char *advice,
                   const char *split, const char *found, const char *example)
{
    if (n > 0)
        kiln_text_printf(&findings->text, "%lld %s in %s, such as %s", (long long)n, found, split,
                         example);
    else
        kiln_text_printf(&findings->text, "no %s in %s", found, split);
    kiln_findings_add(findings, KILN_CHECK_WARNING, what, n, advice);
}

void kiln_tag_check_report(const KilnTagCheck *check, const char *split,
                           void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx)
{
    KilnFindings findings = { add, ctx, { 0 } };

    if (check->begins == 0)
        return; /* parts of speech, or IOB1: every sequence is right */
    kiln_text_printf(&findings.text,
                     "%s: %lld spans in %lld sentences of %lld words, %lld sentences without any",
                     split, (long long)check->spans, (long long)check->sentences,
                     (long long)check->words, (long long)check->outside);
    kiln_findings_add(&findings, KILN_CHECK_NOTE, "spans", check->spans, NULL);
    report(&findings, "malformed tags", check->strays,
           "a span begins with B-; such tags count as new spans (conlleval's rule)", split,
           "tags that continue no span", check->stray);
    report(&findings, "blanks in spans", check->spaces, "split or trim these words", split,
           "words of spans with white space in them", check->space);
    report(&findings, "punctuation of spans", check->punctuated, "is it part of the name?", split,
           "spans that begin or end with punctuation", check->punctuation);
    kiln_text_release(&findings.text);
}
