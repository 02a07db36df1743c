/* Writes an input's files. */
#include "tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"

enum { MOST_FILES = 32, MOST_NAME = 64 };

/* libFuzzer has one input after the other; the folder stays. */
static char folder[64];

static void remove_folder(void)
{
    if (kiln_path_remove(folder, NULL) < 0)
        fprintf(stderr, "fuzz: %s could not be removed\n", folder);
}

static void make_folder(void)
{
    if (folder[0] != '\0')
        return;
    snprintf(folder, sizeof(folder), "%s/kiln-fuzz-XXXXXX",
             kiln_is_dir("/dev/shm") ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL)
        abort();
    atexit(remove_folder);
}

/* Names that stay inside the folder. */
static bool is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_/");

    return n > 0 && n < MOST_NAME && name[n] == '\0' && name[0] != '/' && name[n - 1] != '/' &&
           strstr(name, "//") == NULL;
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.yaml", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    if (file == NULL)
        return; /* a name of a folder */
    fwrite(text, 1, strlen(text), file);
    fclose(file);
}

static void split_arguments(FuzzTree *tree, char *text)
{
    size_t n = 0;

    while (*text != '\0' && n < FUZZ_MOST_ARGUMENTS) {
        char *end = strchr(text, '\n');

        tree->arguments[n++] = text;
        if (end == NULL)
            break;
        *end = '\0';
        text = end + 1;
    }
    tree->arguments[n] = NULL;
}

void fuzz_tree_write(FuzzTree *tree, char *text)
{
    const char *name = "config";

    make_folder();
    remove_folder();
    mkdir(folder, 0700);
    *tree = (FuzzTree) { .dir = folder };
    for (int i = 0; text != NULL && i < MOST_FILES; i++) {
        char *next = strstr(text, "=== ");

        if (next != NULL)
            *next = '\0';
        if (strcmp(name, "args") == 0)
            split_arguments(tree, text);
        else if (is_name(name))
            write_file(name, text);
        if (next == NULL)
            return;
        name = next + strlen("=== ");
        text = strchr(name, '\n');
        if (text != NULL)
            *text++ = '\0';
    }
}
