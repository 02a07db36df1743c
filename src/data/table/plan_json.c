/* What was fitted to a table's training rows, as table.json of a checkpoint. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "data/table/table_internal.h"

#define FILE_NAME "table.json"

/* ---- Writing --------------------------------------------------------------------------------- */

static json_t *names_json(char *const *names, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        kiln_json_add(&list, json_string(names[i]));
    return list;
}

static json_t *column_json(const KilnTableColumn *column)
{
    json_t *one = json_pack("{s:s, s:s, s:b}", "name", column->name, "kind",
                            kiln_column_kinds[column->kind].name, "missing", column->has_missing);

    if (column->kind == KILN_COLUMN_CATEGORY)
        kiln_json_put(&one, "names", names_json(column->names, column->n_names));
    if (column->buckets > 0)
        kiln_json_put(&one, "hash_buckets", json_integer(column->buckets));
    return one;
}

static json_t *number_json(const KilnTableNumber *number)
{
    json_t *one = json_pack("{s:I, s:i, s:f, s:f, s:f}", "column", (json_int_t)number->column,
                            "part", number->part, "fill", number->fill, "mean", number->mean,
                            "deviation", number->deviation);
    json_t *quantiles = number->n_quantiles > 0 ? json_array() : NULL;

    for (size_t i = 0; i < number->n_quantiles; i++)
        kiln_json_add(&quantiles, json_real(number->quantiles[i]));
    if (number->n_quantiles > 0)
        kiln_json_put(&one, "quantiles", quantiles);
    return one;
}

KilnStatus kiln_table_plan_write(const KilnTablePlan *plan, const char *folder, KilnError *err)
{
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:I, s:b}", "scaling", kiln_table_scalings[plan->scaling].name,
        "missing_numbers", kiln_table_missing[plan->missing].name, "target",
        (json_int_t)plan->target, "group", (json_int_t)plan->group, "classes", plan->classes);
    json_t *columns = json_array(), *numbers = json_array();
    char *path = kiln_path_join(folder, FILE_NAME);

    for (size_t c = 0; c < plan->n_columns; c++)
        kiln_json_add(&columns, column_json(&plan->columns[c]));
    for (size_t i = 0; i < plan->n_numbers; i++)
        kiln_json_add(&numbers, number_json(&plan->numbers[i]));
    kiln_json_put(&root, "columns", columns);
    kiln_json_put(&root, "numbers", numbers);
    kiln_json_put(&root, "class_names", names_json(plan->class_names, plan->n_classes));
    char *text = kiln_json_dump(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    KilnStatus status = text != NULL && path != NULL
                            ? kiln_file_write(path, text, strlen(text), err)
                            : kiln_error_nomem(err, plan->n_columns * sizeof(KilnTableColumn));
    json_decref(root);
    free(text);
    free(path);
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool read_names(const json_t *list, char ***ret, size_t *ret_n)
{
    const size_t n = json_array_size(list);
    char **names = calloc(n + 1, sizeof(*names));
    bool good = names != NULL && json_is_array(list);

    for (size_t i = 0; i < n && good; i++) {
        const char *name = json_string_value(json_array_get(list, i));

        good = name != NULL && (names[i] = kiln_strdup(name)) != NULL;
    }
    *ret = names;
    *ret_n = names != NULL ? n : 0;
    return good;
}

/* The value of the choice that a member names; -1: none. */
static int64_t read_choice(const json_t *object, const char *key, const KilnChoice *choices)
{
    const char *name = json_string_value(json_object_get(object, key));

    for (; name != NULL && choices->name != NULL; choices++)
        if (strcmp(choices->name, name) == 0)
            return choices->value;
    return -1;
}

static bool read_column(const json_t *saved, KilnTableColumn *ret)
{
    const char *name = json_string_value(json_object_get(saved, "name"));
    const int64_t kind = read_choice(saved, "kind", kiln_column_kinds);

    if (name == NULL || kind < 0 || (ret->name = kiln_strdup(name)) == NULL)
        return false;
    ret->kind = (KilnColumnKind)kind;
    ret->has_missing = json_is_true(json_object_get(saved, "missing"));
    ret->buckets = json_integer_value(json_object_get(saved, "hash_buckets"));
    if (ret->buckets < 0 || ret->buckets > INT32_MAX - KILN_ID_FIRST)
        return false;
    return kind != KILN_COLUMN_CATEGORY ||
           read_names(json_object_get(saved, "names"), &ret->names, &ret->n_names);
}

static bool read_number(const json_t *saved, const KilnTablePlan *plan, KilnTableNumber *ret)
{
    const json_t *quantiles = json_object_get(saved, "quantiles");
    const json_int_t column = json_integer_value(json_object_get(saved, "column"));
    const json_int_t part = json_integer_value(json_object_get(saved, "part"));
    const size_t n = json_array_size(quantiles);

    if (column < 0 || (size_t)column >= plan->n_columns || part < -1 || part > KILN_DATE_PARTS)
        return false;
    *ret = (KilnTableNumber) {
        .column = (size_t)column,
        .part = (int)part,
        .fill = json_number_value(json_object_get(saved, "fill")),
        .mean = json_number_value(json_object_get(saved, "mean")),
        .deviation = json_number_value(json_object_get(saved, "deviation")),
        .quantiles = calloc(n + 1, sizeof(double)),
    };
    ret->n_quantiles = ret->quantiles != NULL ? n : 0;
    for (size_t i = 0; i < ret->n_quantiles; i++)
        ret->quantiles[i] = json_number_value(json_array_get(quantiles, i));
    return ret->quantiles != NULL && ret->deviation != 0.0;
}

static bool read_plan(const json_t *root, KilnTablePlan *plan)
{
    const json_t *columns = json_object_get(root, "columns");
    const json_t *numbers = json_object_get(root, "numbers");
    const int64_t scaling = read_choice(root, "scaling", kiln_table_scalings);
    const int64_t missing = read_choice(root, "missing_numbers", kiln_table_missing);
    const size_t n_columns = json_array_size(columns), n_numbers = json_array_size(numbers);

    plan->target = json_integer_value(json_object_get(root, "target"));
    plan->group = json_integer_value(json_object_get(root, "group"));
    plan->classes = json_is_true(json_object_get(root, "classes"));
    plan->scaling = (KilnTableScaling)scaling;
    plan->missing = (KilnTableMissing)missing;
    plan->columns = calloc(n_columns + 1, sizeof(*plan->columns));
    plan->numbers = calloc(n_numbers + 1, sizeof(*plan->numbers));
    plan->categories = calloc(n_columns + 1, sizeof(*plan->categories));
    if (scaling < 0 || missing < 0 || plan->columns == NULL || plan->numbers == NULL ||
        plan->categories == NULL || plan->target < -1 || plan->target >= (int64_t)n_columns ||
        plan->group < -1 || plan->group >= (int64_t)n_columns)
        return false;
    plan->n_columns = n_columns;
    for (size_t c = 0; c < n_columns; c++)
        if (!read_column(json_array_get(columns, c), &plan->columns[c]))
            return false;
    for (size_t c = 0; c < n_columns; c++)
        if (plan->columns[c].kind == KILN_COLUMN_CATEGORY && (int64_t)c != plan->target &&
            (int64_t)c != plan->group)
            plan->categories[plan->n_categories++] = c;
    for (; plan->n_numbers < n_numbers; plan->n_numbers++)
        if (!read_number(json_array_get(numbers, plan->n_numbers), plan,
                         &plan->numbers[plan->n_numbers]))
            return false;
    return read_names(json_object_get(root, "class_names"), &plan->class_names, &plan->n_classes);
}

KilnStatus kiln_table_plan_read(KilnTablePlan *plan, const char *folder, KilnError *err)
{
    char *path = kiln_path_join(folder, FILE_NAME);
    json_t *root = NULL;
    KilnStatus status = path != NULL ? kiln_json_read(path, &root, err)
                                     : kiln_error_nomem(err, strlen(folder));

    if (status >= 0 && !read_plan(root, plan))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: does not describe a table; the checkpoint is damaged, or is "
                                "of other data",
                                path);
    json_decref(root);
    free(path);
    return status;
}
