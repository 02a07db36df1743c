/* Calls in the override grammar: which function, and which argument is which. */
#include "config/override/functions.h"

#include <string.h>

#define MOST_FUNCTIONS 16

typedef struct Function {
    const char *name;
    KilnFunction run;
    const char *parameters[KILN_CALL_NAMED];
    size_t required;
    bool variadic;   /* arguments without a name are not those of `parameters` */
    bool as_written; /* quoted text stays quoted when it is written again */
} Function;

static const Function functions[] = {
    { .name = "bool", .run = kiln_call_bool, .parameters = { "value" }, .variadic = true },
    { .name = "choice", .run = kiln_call_choice, .variadic = true },
    { .name = "extend_list", .run = kiln_call_extend_list, .variadic = true, .as_written = true },
    { .name = "float", .run = kiln_call_float, .parameters = { "value" }, .variadic = true },
    { .name = "glob",
      .run = kiln_call_glob,
      .parameters = { "include", "exclude" },
      .required = 1 },
    { .name = "int", .run = kiln_call_int, .parameters = { "value" }, .variadic = true },
    { .name = "interval",
      .run = kiln_call_interval,
      .parameters = { "start", "end" },
      .required = 2 },
    { .name = "json_str", .run = kiln_call_json_str, .parameters = { "value" }, .variadic = true },
    { .name = "range",
      .run = kiln_call_range,
      .parameters = { "start", "stop", "step" },
      .required = 1 },
    { .name = "shuffle",
      .run = kiln_call_shuffle,
      .parameters = { "list", "sweep" },
      .variadic = true },
    { .name = "sort",
      .run = kiln_call_sort,
      .parameters = { "list", "sweep", "reverse" },
      .variadic = true },
    { .name = "str", .run = kiln_call_str, .parameters = { "value" }, .variadic = true },
    { .name = "tag", .run = kiln_call_tag, .parameters = { "sweep" }, .variadic = true },
    { .name = "zip", .run = kiln_call_zip, .variadic = true, .as_written = true },
};

_Static_assert(KILN_COUNT(functions) <= MOST_FUNCTIONS, "unknown_function has no room");

KilnStatus kiln_call_fail(const KilnFunctionCall *call, KilnError *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_error_vset(err, KILN_E_SYNTAX, format, args);
    va_end(args);
    kiln_value_point(call->value, call->at, err);
    return kiln_error_prefix(err, "column %zu: %s(): ", call->at + 1, call->name);
}

static KilnStatus unknown_function(const KilnFunctionCall *call, KilnError *err)
{
    const char *names[MOST_FUNCTIONS];
    KilnText list = { 0 };
    const char *near;

    for (size_t i = 0; i < KILN_COUNT(functions); i++) {
        names[i] = functions[i].name;
        kiln_text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    near = kiln_nearest(call->name, names, KILN_COUNT(functions));
    kiln_value_fail(call->value, call->at, err, "there is no function '%s'%s%s%s; there are %s",
                    call->name, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                    near != NULL ? "?)" : "", list.data != NULL ? list.data : "some");
    kiln_text_release(&list);
    return KILN_E_SYNTAX;
}

static const char *parameter(const Function *function, size_t i)
{
    return i < KILN_CALL_NAMED ? function->parameters[i] : NULL;
}

static KilnStatus bind_named(KilnFunctionCall *call, const Function *function,
                             const KilnEntry *argument, KilnError *err)
{
    for (size_t i = 0; parameter(function, i) != NULL; i++) {
        if (strcmp(function->parameters[i], argument->key) != 0)
            continue;
        if (call->named[i] != NULL)
            return kiln_call_fail(call, err, "'%s' is given twice", argument->key);
        call->named[i] = argument->value;
        return KILN_OK;
    }
    return kiln_call_fail(call, err, "there is no argument '%s'", argument->key);
}

static KilnStatus bind_place(KilnFunctionCall *call, const Function *function, size_t place,
                             const KilnEntry *argument, KilnError *err)
{
    if (!function->variadic) {
        if (parameter(function, place) == NULL)
            return kiln_call_fail(call, err, "it takes at most %zu arguments", place);
        call->named[place] = argument->value;
        return KILN_OK;
    }
    if (kiln_node_append(call->value->maker.arena, call->places, NULL, call->value->maker.origin,
                         argument->value) == NULL)
        return kiln_error_nomem(err, sizeof(*argument));
    return KILN_OK;
}

static KilnStatus bind(KilnFunctionCall *call, const Function *function,
                       const KilnConfigNode *arguments, KilnError *err)
{
    KilnStatus status = KILN_OK;
    bool named = false;

    for (size_t i = 0; i < arguments->count && status >= 0; i++) {
        const KilnEntry *argument = &arguments->entries[i];

        if (!function->as_written)
            argument->value->quote = '\0';
        if (argument->key != NULL)
            status = bind_named(call, function, argument, err);
        else if (named)
            status = kiln_call_fail(call, err, "an argument without a name behind one with a name");
        else
            status = bind_place(call, function, i, argument, err);
        named = argument->key != NULL;
    }
    for (size_t i = 0; i < function->required && status >= 0; i++)
        if (call->named[i] == NULL)
            status = kiln_call_fail(call, err, "'%s' is missing", function->parameters[i]);
    return status;
}

KilnStatus kiln_function_call(KilnValueText *value, const char *name, size_t at,
                              const KilnConfigNode *arguments, KilnConfigNode **ret, KilnError *err)
{
    KilnFunctionCall call = { .value = value, .name = name, .at = at };

    for (size_t i = 0; i < KILN_COUNT(functions); i++) {
        if (strcmp(name, functions[i].name) != 0)
            continue;
        call.places = kiln_node_new(&value->maker, KILN_NODE_LIST);
        if (call.places == NULL)
            return kiln_error_nomem(err, sizeof(*call.places));
        KilnStatus status = bind(&call, &functions[i], arguments, err);
        return status >= 0 ? functions[i].run(&call, ret, err) : status;
    }
    return unknown_function(&call, err);
}

bool kiln_function_is_called(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

    if (text[n + strspn(text + n, " \t")] != '(')
        return false;
    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        if (strncmp(functions[i].name, text, n) == 0 && functions[i].name[n] == '\0')
            return true;
    return false;
}
