/* Finds the config files that select a component. */
#include "cli/help/config_users.h"

#include <string.h>

#include "config/defaults/defaults_entry.h"
#include "registry/config_schema.h"

enum { SOURCES = 36 /* the column of the files */ };

typedef struct Users {
    KilnPage *page;
    const KilnComposeRequest *request;
    const KilnComponent *component; /* wanted */
    const char *group; /* all files of this group are wanted; NULL: those of the component */
    KilnArena arena;
    KilnText direct; /* options that name the component: "model/resnet", each after a line end */
    bool found;
} Users;

static const char *source_of(const KilnConfigFile *file)
{
    return file->content->layer == KILN_LAYER_DEFAULT ? "without a file" : file->source;
}

/* What a node's _target_ names; NULL: it has none. */
static const KilnComponent *target_of(const KilnConfigNode *node, const Users *users)
{
    const KilnConfigNode *target = kiln_node_get(node, "_target_");
    const KilnComponent *component = NULL;

    if (target == NULL || target->kind != KILN_NODE_SCALAR ||
        kiln_registry_target(users->request->registry, target->text, KILN_KIND_ANY, &component,
                             NULL) < 0)
        return NULL;
    return component;
}

static bool names_component(const KilnConfigNode *node, const Users *users)
{
    if (target_of(node, users) == users->component)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (names_component(node->entries[i].value, users))
            return true;
    return false;
}

/* Does a file of a folder in a group's folder, such as task/loss, configure a part of what the
 * group does? */
static bool is_part(Users *users, const char *group, size_t top, const KilnConfigFile *file)
{
    const KilnComponent *component = target_of(file->content, users);
    KilnGroupType type;

    if (component == NULL || group[top] != '/')
        return false;
    const char *name = kiln_arena_strndup(&users->arena, group, top);
    return name != NULL && kiln_group_type(users->request, name, &type, NULL) >= 0 &&
           type.form == KILN_GROUP_COMPONENT && type.kind != component->kind;
}

/* Begin the line of a file with the argument that selects it: "  model=resnet". */
static void begin_line(Users *users, const char *group, const char *option,
                       const KilnConfigFile *file)
{
    const size_t top = strcspn(group, "/");
    const char *below = group[top] == '/' ? group + top + 1 : "";

    if (is_part(users, group, top, file))
        kiln_text_printf(&users->page->text, "  +%s=%s", group, option);
    else
        kiln_text_printf(&users->page->text, "  %.*s%s%s%s%s", (int)top, group, top > 0 ? "=" : "",
                         below, *below != '\0' ? "/" : "", option);
    users->found = true;
}

static void visit_direct(void *ctx, const char *group, const char *option,
                         const KilnConfigFile *file)
{
    Users *users = ctx;

    if (!names_component(file->content, users))
        return;
    begin_line(users, group, option, file);
    kiln_page_beside(users->page, SOURCES, "%s", source_of(file));
    if (group[0] != '\0')
        kiln_text_printf(&users->direct, "\n%s/%s\n", group, option);
}

/* Files whose defaults lists select one of those. */
static void visit_indirect(void *ctx, const char *group, const char *option,
                           const KilnConfigFile *file)
{
    const KilnDefaultsEntry lister = { .group = group, .into = "" };
    const KilnConfigNode *list = file->defaults;
    Users *users = ctx;

    for (size_t i = 0; list != NULL && users->direct.data != NULL && i < list->count; i++) {
        KilnDefaultsEntry *entry = kiln_defaults_entry_read(&users->arena, list->entries[i].value,
                                                            NULL);

        if (entry == NULL || entry->kind != KILN_DEFAULTS_GROUP || entry->option == NULL ||
            !kiln_defaults_entry_attach(&users->arena, entry, &lister))
            continue;
        const char *line = kiln_arena_printf(&users->arena, "\n%s/%s\n", entry->group,
                                             entry->option);
        if (line == NULL || strstr(users->direct.data, line) == NULL)
            continue;
        begin_line(users, group, option, file);
        kiln_page_beside(users->page, SOURCES, "%s selects %s/%s", file->source, entry->group,
                         entry->option);
    }
}

static void visit_member(void *ctx, const char *group, const char *option,
                         const KilnConfigFile *file)
{
    Users *users = ctx;
    size_t n = strlen(users->group);

    if (strncmp(group, users->group, n) != 0 || (group[n] != '\0' && group[n] != '/'))
        return;
    begin_line(users, group, option, file);
    kiln_page_beside(users->page, SOURCES, "%s", source_of(file));
}

KilnStatus kiln_config_users_print(KilnPage *page, const KilnComposeRequest *request,
                                   const KilnComponent *component, const char *group,
                                   KilnError *err)
{
    Users users = { .page = page, .request = request, .component = component, .group = group };
    KilnStatus status = kiln_compose_files(request, group != NULL ? visit_member : visit_direct,
                                           &users, err);

    if (status >= 0 && group == NULL)
        status = kiln_compose_files(request, visit_indirect, &users, err);
    if (!users.found)
        kiln_page_line(page, 2, "no config file");
    kiln_text_release(&users.direct);
    kiln_arena_release(&users.arena);
    return status;
}
