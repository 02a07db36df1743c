/* Finding a process's control groups: /proc/self/cgroup names them, and
 * /proc/self/mountinfo says where their files are. */
#include "base/system/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* ---- Files of the kernel -------------------------------------------------------- */

static bool read_all(const char *path, KilnText *ret)
{
    FILE *file = fopen(path, "re");
    char piece[4096];
    size_t n;

    kiln_text_clear(ret);
    if (file == NULL)
        return false;
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
        kiln_text_append_n(ret, piece, n);
    bool whole = ferror(file) == 0 && !ret->failed && ret->data != NULL;
    fclose(file);
    return whole;
}

bool kiln_kernel_file(const char *root, const char *path, KilnText *ret)
{
    char whole[4096];
    int n = snprintf(whole, sizeof(whole), "%s%s", root, path);

    return n > 0 && (size_t)n < sizeof(whole) && read_all(whole, ret);
}

const char *kiln_kernel_word(const char *text, char *buf, size_t size)
{
    static const char space[] = " \t\n";
    size_t length;

    text += strspn(text, space);
    length = strcspn(text, space);
    buf[0] = '\0';
    if (length == 0 || length >= size)
        return NULL;
    memcpy(buf, text, length);
    buf[length] = '\0';
    return text + length;
}

int64_t kiln_kernel_number(const char *text)
{
    char word[32];
    int64_t value;

    if (kiln_kernel_word(text, word, sizeof(word)) == NULL ||
        kiln_parse_i64(word, &value, NULL) < 0 || value < 0)
        return -1;
    return value;
}

/* ---- Which group ------------------------------------------------------------------ */

/* Whether `word` is one of the comma-separated `list` of `length` bytes. */
static bool lists(const char *list, size_t length, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= length; i++)
        if ((i == 0 || list[i - 1] == ',') && strncmp(list + i, word, n) == 0 &&
            (i + n == length || list[i + n] == ','))
            return true;
    return false;
}

/* "4:memory:/a/b" and "0::/a/b": the path of the controller's line. */
static bool own_path(const char *text, const char *controller, char *ret, size_t size)
{
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *first = memchr(line, ':', length);
        const char *second = first != NULL
                                 ? memchr(first + 1, ':', length - (size_t)(first + 1 - line))
                                 : NULL;
        size_t names = second != NULL ? (size_t)(second - first - 1) : 0;

        if (second != NULL &&
            (controller == NULL ? names == 0 : lists(first + 1, names, controller))) {
            snprintf(ret, size, "%.*s", (int)(length - (size_t)(second + 1 - line)), second + 1);
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* ---- Where its files are -------------------------------------------------------------- */

typedef struct Mount {
    char root[2048], point[2048];
} Mount;

/* "31 23 0:28 ROOT POINT OPTIONS TAGS... - TYPE SOURCE SUPER_OPTIONS" */
static bool read_mount(const char *line, const char *controller, Mount *ret)
{
    const char *dash = strstr(line, " - "), *at = line;
    char word[1024];

    for (int i = 0; i < 3 && at != NULL; i++)
        at = kiln_kernel_word(at, word, sizeof(word));
    if (at != NULL)
        at = kiln_kernel_word(at, ret->root, sizeof(ret->root));
    if (at != NULL)
        at = kiln_kernel_word(at, ret->point, sizeof(ret->point));
    if (at == NULL || dash == NULL || (at = kiln_kernel_word(dash + 3, word, sizeof(word))) == NULL)
        return false;
    if (controller == NULL)
        return strcmp(word, "cgroup2") == 0;
    if (strcmp(word, "cgroup") != 0)
        return false;
    at = kiln_kernel_word(at, word, sizeof(word));
    return at != NULL && kiln_kernel_word(at, word, sizeof(word)) != NULL &&
           lists(word, strlen(word), controller);
}

static bool find_mount(const char *text, const char *controller, Mount *ret)
{
    char line[8192];

    for (const char *p = text; *p != '\0';) {
        size_t length = strcspn(p, "\n");

        if (length < sizeof(line)) {
            memcpy(line, p, length);
            line[length] = '\0';
            if (read_mount(line, controller, ret))
                return true;
        }
        p += length + (p[length] == '\n');
    }
    return false;
}

/* The part of the group's path below the mount: a container sees the middle of
 * the tree, and its own group may be the mount's root. */
static const char *below(const char *path, const char *mounted)
{
    size_t length = strlen(mounted);

    if (strncmp(path, "/..", 3) == 0 || strcmp(path, "/") == 0)
        return "";
    if (strcmp(mounted, "/") == 0)
        return path;
    if (strncmp(path, mounted, length) == 0 && (path[length] == '/' || path[length] == '\0'))
        return path + length;
    return "";
}

bool kiln_cgroup_find(const char *root, const char *controller, KilnCgroup *ret)
{
    KilnText text = { 0 };
    char path[2048];
    Mount mount;
    bool found = kiln_kernel_file(root, "/proc/self/cgroup", &text) &&
                 own_path(text.data, controller, path, sizeof(path)) &&
                 kiln_kernel_file(root, "/proc/self/mountinfo", &text) &&
                 find_mount(text.data, controller, &mount);

    kiln_text_release(&text);
    if (!found)
        return false;
    int top = snprintf(ret->dir, sizeof(ret->dir), "%s%s", root, mount.point);
    if (top < 0 || (size_t)top >= sizeof(ret->dir))
        return false;
    ret->top = (size_t)top;
    int more = snprintf(ret->dir + top, sizeof(ret->dir) - (size_t)top, "%s",
                        below(path, mount.root));
    return more >= 0 && (size_t)(top + more) < sizeof(ret->dir);
}

bool kiln_cgroup_read(const KilnCgroup *group, const char *file, KilnText *ret)
{
    char path[4352];
    int n = snprintf(path, sizeof(path), "%s/%s", group->dir, file);

    return n > 0 && (size_t)n < sizeof(path) && read_all(path, ret);
}

bool kiln_cgroup_up(KilnCgroup *group)
{
    char *slash = strrchr(group->dir + group->top, '/');

    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}
