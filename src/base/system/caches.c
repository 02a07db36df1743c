/* The processor's model and the sizes of its caches, from the kernel's files. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

enum { LINE = 256 };

/* One file of the i-th cache of the first processor. Allocates nothing, since a backend is made
 * from this and an unknown cache is no error. */
static bool read_cache(const char *root, int i, const char *file, char line[LINE])
{
    char path[4096];
    const int n = snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu0/cache/index%d/%s",
                           root, i, file);
    const int fd = n < (int)sizeof(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return false;
    const ssize_t length = read(fd, line, LINE - 1);

    close(fd);
    line[length > 0 ? length : 0] = '\0';
    return length > 0;
}

KilnCaches kiln_caches_read(const char *root)
{
    KilnCaches ret = { .bytes = { 0 } };
    char line[LINE];

    for (int i = 0; i < MOST_CACHES && read_cache(root, i, "level", line); i++) {
        const int64_t level = kiln_kernel_number(line);

        if (level < 1 || level > KILN_CACHE_LEVELS || !read_cache(root, i, "type", line) ||
            strncmp(line, "Instruction", strlen("Instruction")) == 0 ||
            !read_cache(root, i, "size", line))
            continue;
        ret.bytes[level - 1] = size_of(line);
        if (read_cache(root, i, "shared_cpu_list", line))
            ret.shared[level - 1] = kiln_processor_list_count(line);
    }
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
