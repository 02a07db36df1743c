/* Encodes long documents in windows that overlap. */
#include "text/stream/windowed_text.h"

#include "text/stream/text_place.h"

enum { CONTEXT = 2 << 10 }; /* bytes before and after a window */

/* ---- Cutting --------------------------------------------------------------------------------- */

/* The first byte of the character that byte `at` is of; at least `least`. */
static uint64_t character_begin(const char *data, uint64_t at, uint64_t least)
{
    while (at > least && ((unsigned char)data[at] & 0xc0) == 0x80)
        at--;
    return at;
}

uint64_t kiln_text_cut(const char *data, uint64_t at, uint64_t end)
{
    if (end - at <= KILN_TEXT_WINDOW)
        return end;
    const uint64_t most = at + KILN_TEXT_WINDOW, least = at + KILN_TEXT_WINDOW / 2;
    uint64_t space = least;

    for (uint64_t i = most; i > least; i--) {
        if (data[i - 1] == '\n')
            return i;
        if (data[i] == ' ' && space == least)
            space = i;
    }
    return space > least ? space : character_begin(data, most, least);
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* Tokens that begin in [at, stop), of the text of [from, to). */
typedef struct Window {
    uint64_t from, at, stop, to;
} Window;

/* The window that begins at `at`. */
static Window next_window(const KilnWindowedText *text, uint64_t at)
{
    const char *data = text->map->data;
    const uint64_t begin = text->begin, end = text->end;
    const uint64_t stop = kiln_text_cut(data, at, end);

    return (Window) {
        .from = at - begin > CONTEXT ? character_begin(data, at - CONTEXT, begin) : begin,
        .at = at,
        .stop = stop,
        .to = end - stop > CONTEXT ? character_begin(data, stop + CONTEXT, stop) : end,
    };
}

static KilnStatus encode(const KilnWindowedText *text, const Window *window, KilnEncoding *work,
                         KilnError *err)
{
    const bool whole = window->from == window->at && window->to == window->stop;
    const KilnTokenizerInput input = {
        .text = { text->map->data + window->from, (size_t)(window->to - window->from) },
        .offsets = whole ? KILN_OFFSETS_NONE : KILN_OFFSETS_BYTES,
    };
    KilnStatus status = kiln_tokenizer_encode(text->tokenizer, &input, work, err);

    return status >= 0 ? status : kiln_text_place_error(text->map, window->from, window->to, err);
}

/* The first token that begins at or after that byte. */
static size_t first_from(const KilnEncoding *encoding, uint64_t byte)
{
    size_t i = 0;

    while (i < encoding->n && encoding->spans[i].begin < byte)
        i++;
    return i;
}

/* Whether the tokens before the first of the window end where it begins. */
static bool fits(const Window *window, const KilnEncoding *encoding)
{
    const uint64_t at = window->at - window->from;
    const size_t first = first_from(encoding, at);

    return first == 0 || encoding->spans[first - 1].end <= at;
}

/* Encode the next window at `*at`, hand on its tokens, and move `*at` to the end of them. */
static KilnStatus put_window(const KilnWindowedText *text, uint64_t *at, KilnEncoding *work,
                             KilnError *err)
{
    Window window = next_window(text, *at);
    size_t first = 0, last;
    KilnStatus status = encode(text, &window, work, err);

    if (status >= 0 && window.from < window.at && !fits(&window, work)) {
        window.from = window.at;
        status = encode(text, &window, work, err);
    }
    if (status < 0)
        return status;
    *at = window.stop;
    last = work->n;
    if (window.from < window.at)
        first = first_from(work, window.at - window.from);
    if (window.stop < window.to)
        last = first_from(work, window.stop - window.from);
    if (window.stop < window.to && last > first &&
        window.from + work->spans[last - 1].end > window.stop)
        *at = window.from + work->spans[last - 1].end;
    return text->put(text->ctx, work->ids + first, last - first, err);
}

KilnStatus kiln_windowed_text_encode(const KilnWindowedText *text, KilnEncoding *work,
                                     KilnError *err)
{
    uint64_t at = text->begin;
    KilnStatus status = KILN_OK;

    while (at < text->end && status >= 0) {
        status = put_window(text, &at, work, err);
        if (status >= 0)
            status = kiln_poll_check(text->poll, "tokens", (int64_t)at, (int64_t)text->map->size,
                                     err);
    }
    return status;
}
