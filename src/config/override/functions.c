/* The table of functions of the override grammar, and the binding of arguments. */
#include "config/override/functions.h"

#include <string.h>

typedef struct Function {
    const char *name;
    KilnFunction *run;
    const char *parameters[KILN_FUNCTION_PARAMETERS];
    size_t required;  /* parameters */
    bool variadic;    /* positional arguments are not those of `parameters` */
    bool keep_quotes; /* of the arguments, when the value is written again */
} Function;

static const Function functions[] = {
    { "bool", kiln_function_cast, { "value" }, .variadic = true },
    { "choice", kiln_function_choice, .variadic = true },
    { "extend_list", kiln_function_extend_list, .variadic = true, .keep_quotes = true },
    { "float", kiln_function_cast, { "value" }, .variadic = true },
    { "glob", kiln_function_glob, { "include", "exclude" }, .required = 1 },
    { "int", kiln_function_cast, { "value" }, .variadic = true },
    { "interval", kiln_function_range, { "start", "end" }, .required = 2 },
    { "json_str", kiln_function_cast, { "value" }, .variadic = true },
    { "range", kiln_function_range, { "start", "stop", "step" }, .required = 1 },
    { "shuffle", kiln_function_shuffle, { "list", "sweep" }, .variadic = true },
    { "sort", kiln_function_sort, { "list", "sweep", "reverse" }, .variadic = true },
    { "str", kiln_function_cast, { "value" }, .variadic = true },
    { "tag", kiln_function_tag, { "sweep" }, .variadic = true },
    { "zip", kiln_function_choice, .variadic = true, .keep_quotes = true },
};

KilnStatus kiln_function_fail(const KilnFunctionCall *call, const char *format, ...)
{
    KilnError *err = call->parser->err;
    va_list args;

    va_start(args, format);
    kiln_error_vset(err, KILN_E_SYNTAX, format, args);
    va_end(args);
    kiln_value_set_origin(call->parser, call->at);
    return kiln_error_prefix(err, "column %zu: %s(): ", call->at + 1, call->name);
}

KilnStatus kiln_function_refuse_sweeps(const KilnFunctionCall *call)
{
    for (size_t i = 0; i < call->args->count; i++)
        if (kiln_sweep_value_of(call->parser, call->args->entries[i].value) != NULL)
            return kiln_function_fail(call,
                                      "argument %zu has several values itself; write them all as "
                                      "arguments",
                                      i + 1);
    return KILN_OK;
}

static KilnStatus unknown_function(const KilnFunctionCall *call)
{
    const char *names[KILN_COUNT(functions)];
    KilnText list = { 0 };
    const char *near;

    for (size_t i = 0; i < KILN_COUNT(functions); i++) {
        names[i] = functions[i].name;
        kiln_text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    near = kiln_nearest(call->name, names, KILN_COUNT(functions));
    kiln_value_fail(call->parser, call->at, "there is no function '%s'%s%s%s; there are %s",
                    call->name, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                    near != NULL ? "?)" : "", list.data != NULL ? list.data : "some");
    kiln_text_release(&list);
    return KILN_E_SYNTAX;
}

static KilnStatus bind_named(KilnFunctionCall *call, const Function *function,
                             const KilnEntry *argument)
{
    for (size_t i = 0; i < KILN_FUNCTION_PARAMETERS && function->parameters[i] != NULL; i++) {
        if (strcmp(function->parameters[i], argument->key) != 0)
            continue;
        if (call->named[i] != NULL)
            return kiln_function_fail(call, "'%s' is given twice", argument->key);
        call->named[i] = argument->value;
        return KILN_OK;
    }
    return kiln_function_fail(call, "there is no argument '%s'", argument->key);
}

static KilnStatus bind_positional(KilnFunctionCall *call, const Function *function, size_t i,
                                  KilnConfigNode *argument)
{
    if (function->variadic)
        return kiln_value_append(call->parser, call->args, NULL, argument);
    if (i >= KILN_FUNCTION_PARAMETERS || function->parameters[i] == NULL)
        return kiln_function_fail(call, "it takes at most %zu arguments", i);
    call->named[i] = argument;
    return KILN_OK;
}

static KilnStatus bind(KilnFunctionCall *call, const Function *function,
                       const KilnConfigNode *arguments)
{
    KilnStatus status = KILN_OK;
    bool named = false;

    for (size_t i = 0; i < arguments->count && status >= 0; i++) {
        const KilnEntry *argument = &arguments->entries[i];

        if (!function->keep_quotes)
            argument->value->quote = '\0';
        if (argument->key != NULL)
            status = bind_named(call, function, argument);
        else if (named)
            status = kiln_function_fail(call, "an argument without a name after one with a name");
        else
            status = bind_positional(call, function, i, argument->value);
        named = argument->key != NULL;
    }
    for (size_t i = 0; i < function->required && status >= 0; i++)
        if (call->named[i] == NULL)
            status = kiln_function_fail(call, "'%s' is missing", function->parameters[i]);
    return status;
}

static const Function *find_function(const char *name, size_t n)
{
    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        if (strncmp(functions[i].name, name, n) == 0 && functions[i].name[n] == '\0')
            return &functions[i];
    return NULL;
}

KilnStatus kiln_function_call(KilnValueParser *parser, const char *name, size_t at,
                              const KilnConfigNode *arguments, KilnConfigNode **ret)
{
    KilnFunctionCall call = { .parser = parser, .name = name, .at = at };
    const Function *function = find_function(name, strlen(name));
    KilnStatus status;

    if (function == NULL)
        return unknown_function(&call);
    call.args = kiln_node_new(&parser->maker, KILN_NODE_LIST);
    if (call.args == NULL)
        return kiln_error_nomem(parser->err, sizeof(*call.args));
    status = bind(&call, function, arguments);
    return status >= 0 ? function->run(&call, ret) : status;
}

bool kiln_function_is_called(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

    return text[n + strspn(text + n, " \t")] == '(' && find_function(text, n) != NULL;
}
