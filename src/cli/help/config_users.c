/* Finds the config files that select a component. */
#include "cli/help/config_users.h"

#include <string.h>

#include "registry/registry.h"

typedef struct Users {
    KilnPage *page;
    const KilnRegistry *registry;
    const KilnComponent *component; /* wanted */
    const char *group; /* all files of this group are wanted; NULL: those of the component */
    KilnText direct;   /* files that name the component: "model/resnet", a line each */
    bool found;
} Users;

static const char *source_of(const KilnConfigFile *file)
{
    return file->content->layer == KILN_LAYER_DEFAULT ? "without a file" : file->source;
}

static bool names_component(const KilnConfigNode *node, const Users *users)
{
    const KilnConfigNode *target = kiln_node_get(node, "_target_");
    const KilnComponent *component = NULL;

    if (target != NULL && target->kind == KILN_NODE_SCALAR &&
        kiln_registry_target(users->registry, target->text, KILN_KIND_ANY, &component, NULL) >= 0 &&
        component == users->component)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (names_component(node->entries[i].value, users))
            return true;
    return false;
}

/* Whether a defaults list has "model/resnet": `- model: resnet`, `- override /model: resnet`. */
static bool lists_file(const KilnConfigNode *defaults, const char *path)
{
    const char *slash = strrchr(path, '/');

    for (size_t i = 0; defaults != NULL && slash != NULL && i < defaults->count; i++) {
        const KilnConfigNode *entry = defaults->entries[i].value;
        const char *key = entry->count > 0 ? entry->entries[0].key : NULL;

        if (entry->kind != KILN_NODE_MAP || key == NULL ||
            entry->entries[0].value->kind != KILN_NODE_SCALAR)
            continue;
        if (strrchr(key, ' ') != NULL)
            key = strrchr(key, ' ') + 1;
        key += key[0] == '/';
        if (strncmp(key, path, (size_t)(slash - path)) == 0 &&
            (key[slash - path] == '\0' || key[slash - path] == '@') &&
            strcmp(entry->entries[0].value->text, slash + 1) == 0)
            return true;
    }
    return false;
}

static void append_file(Users *users, const char *group, const char *option, const char *what)
{
    KilnText left = { 0 };

    if (group[0] != '\0')
        kiln_text_printf(&left, "%.*s=%s%s", (int)strcspn(group, "/"), group,
                         strchr(group, '/') != NULL ? strchr(group, '/') + 1 : "",
                         strchr(group, '/') != NULL ? "/" : "");
    kiln_text_append(&left, option);
    if (!left.failed)
        kiln_page_pair(users->page, 36, left.data, what);
    kiln_text_release(&left);
    users->found = true;
}

static void visit_direct(void *ctx, const char *group, const char *option,
                         const KilnConfigFile *file)
{
    Users *users = ctx;

    if (!names_component(file->content, users))
        return;
    append_file(users, group, option, source_of(file));
    if (group[0] != '\0')
        kiln_text_printf(&users->direct, "%s/%s\n", group, option);
}

/* Files whose defaults lists select one of those. */
static void visit_indirect(void *ctx, const char *group, const char *option,
                           const KilnConfigFile *file)
{
    Users *users = ctx;

    for (const char *line = users->direct.data; line != NULL && *line != '\0';) {
        size_t n = strcspn(line, "\n");
        KilnText path = { 0 }, what = { 0 };

        kiln_text_append_n(&path, line, n);
        if (!path.failed && lists_file(file->defaults, path.data)) {
            kiln_text_printf(&what, "%s selects %s", file->source, path.data);
            append_file(users, group, option, what.failed ? "" : what.data);
        }
        kiln_text_release(&path);
        kiln_text_release(&what);
        line += n + (line[n] == '\n');
    }
}

static void visit_member(void *ctx, const char *group, const char *option,
                         const KilnConfigFile *file)
{
    Users *users = ctx;
    size_t n = strlen(users->group);

    if (strncmp(group, users->group, n) == 0 && (group[n] == '\0' || group[n] == '/'))
        append_file(users, group, option, source_of(file));
}

KilnStatus kiln_config_users_print(KilnPage *page, const KilnComposeRequest *request,
                                   const KilnComponent *component, const char *group,
                                   KilnError *err)
{
    Users users = {
        .page = page, .registry = request->registry, .component = component, .group = group
    };
    KilnStatus status = kiln_compose_files(request, group != NULL ? visit_member : visit_direct,
                                           &users, err);

    if (status >= 0 && group == NULL)
        status = kiln_compose_files(request, visit_indirect, &users, err);
    if (!users.found)
        kiln_page_line(page, 2, "no config file");
    kiln_text_release(&users.direct);
    return status;
}
