#include "train/generate/stop_text.h"

#include <string.h>

/* Where `what` begins in the text, from byte `from` on; the text's length: nowhere. */
static size_t find(const KilnText *text, size_t from, const char *what, size_t n)
{
    for (size_t i = from; i + n <= text->length; i++)
        if (memcmp(text->data + i, what, n) == 0)
            return i;
    return text->length;
}

/* Bytes at the end of the text that `what` begins with. */
static size_t begun(const KilnText *text, size_t from, const char *what, size_t n)
{
    size_t most = text->length - from;

    for (most = most < n ? most : n - 1; most > 0; most--)
        if (memcmp(text->data + text->length - most, what, most) == 0)
            break;
    return most;
}

void kiln_stop_text_add(KilnStopText *stop, const char *data, size_t n)
{
    KilnText *text = &stop->text;
    size_t end, held = 0;

    kiln_text_append_n(text, data, n);
    if (text->failed)
        return;
    end = text->length;
    for (size_t i = 0; stop->stop != NULL && stop->stop[i] != NULL; i++) {
        const size_t length = strlen(stop->stop[i]);

        if (length == 0)
            continue;
        const size_t at = find(text, stop->shown, stop->stop[i], length);
        const size_t part = begun(text, stop->shown, stop->stop[i], length);
        end = at < end ? at : end;
        held = part > held ? part : held;
    }
    stop->stopped = end < text->length;
    if (stop->stopped) {
        text->length = end;
        text->data[end] = '\0';
        held = 0;
    }
    stop->shown = end - held;
}
