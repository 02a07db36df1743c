/* The processor's model and the sizes of its caches, from the kernel's files. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/system/cgroup.h"
#include "base/system/machine.h"

enum { MOST_CACHES = 16 }; /* per processor: a bound for what is read */

/* "48K" in bytes; 0: unknown. */
static int64_t size_of(const char *text)
{
    char word[32];
    int64_t bytes;

    if (kiln_kernel_word(text, word, sizeof(word)) == NULL ||
        kiln_parse_size(word, &bytes, NULL) < 0)
        return 0;
    return bytes;
}

/* One file of the i-th cache of the first processor. */
static bool read_cache(const char *root, int i, const char *file, KilnText *text)
{
    char path[96];

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, file);
    return kiln_kernel_file(root, path, text);
}

KilnCaches kiln_caches_read(const char *root)
{
    KilnCaches ret = { .bytes = { 0 } };
    KilnText text = { 0 };

    for (int i = 0; i < MOST_CACHES && read_cache(root, i, "level", &text); i++) {
        const int64_t level = kiln_kernel_number(text.data);

        if (level < 1 || level > KILN_CACHE_LEVELS || !read_cache(root, i, "type", &text) ||
            strncmp(text.data, "Instruction", strlen("Instruction")) == 0 ||
            !read_cache(root, i, "size", &text))
            continue;
        ret.bytes[level - 1] = size_of(text.data);
        if (read_cache(root, i, "shared_cpu_list", &text))
            ret.shared[level - 1] = kiln_processor_list_count(text.data);
    }
    kiln_text_release(&text);
    return ret;
}

/* Copies the value of the first line "KEY : VALUE"; false if there is none. */
static bool find_value(const char *text, const char *key, char *buf, size_t size)
{
    for (; text != NULL; text = strchr(text, '\n'), text += text != NULL)
        if (strncmp(text, key, strlen(key)) == 0) {
            const char *value = text + strcspn(text, ":\n");

            value += strspn(value, ": \t");
            snprintf(buf, size, "%.*s", (int)strcspn(value, "\n"), value);
            return true;
        }
    return false;
}

const char *kiln_processor_model(const char *root, char *buf, size_t size)
{
    KilnText text = { 0 };
    char maker[32], part[32];

    buf[0] = '\0';
    if (kiln_kernel_file(root, "/proc/cpuinfo", &text) &&
        !find_value(text.data, "model name", buf, size) &&
        find_value(text.data, "CPU implementer", maker, sizeof(maker)) &&
        find_value(text.data, "CPU part", part, sizeof(part)))
        snprintf(buf, size, "implementer %s, part %s", maker, part); /* ARM has numbers only */
    kiln_text_release(&text);
    return buf;
}
