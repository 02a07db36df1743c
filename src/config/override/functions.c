/* The table of functions of the override grammar, and the binding of arguments. */
#include "config/override/functions.h"

#include <stdio.h>
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
    { "choice", kiln_function_choice, { "weights" }, .variadic = true },
    { "extend_list", kiln_function_extend_list, .variadic = true, .keep_quotes = true },
    { "float", kiln_function_cast, { "value" }, .variadic = true },
    { "glob", kiln_function_glob, { "include", "exclude" }, .required = 1 },
    { "int", kiln_function_cast, { "value" }, .variadic = true },
    { "interval", kiln_function_range, { "start", "end", "step" }, .required = 2 },
    { "json_str", kiln_function_cast, { "value" }, .variadic = true },
    { "range", kiln_function_range, { "start", "stop", "step" }, .required = 1 },
    { "shuffle", kiln_function_shuffle, { "list", "sweep" }, .variadic = true },
    { "sort", kiln_function_sort, { "list", "sweep", "reverse" }, .variadic = true },
    { "str", kiln_function_cast, { "value" }, .variadic = true },
    { "tag", kiln_function_tag, { "sweep" }, .variadic = true },
    { "when", kiln_function_when, .variadic = true, .keep_quotes = true },
    { "zip", kiln_function_choice, .variadic = true, .keep_quotes = true },
};

KilnConfigNode *kiln_function_fail(const KilnFunctionCall *call, const char *format, ...)
{
    char text[KILN_ERROR_TEXT];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    kiln_value_fail(call->parser, call->at, "%s(): %s", call->name, text);
    return NULL;
}

bool kiln_function_refuse_sweeps(const KilnFunctionCall *call)
{
    for (size_t i = 0; i < call->args->count; i++) {
        if (kiln_sweep_value_of(call->parser, call->args->entries[i].value) == NULL)
            continue;
        kiln_function_fail(
            call, "argument %zu has several values itself; write them all as arguments", i + 1);
        return false;
    }
    return true;
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

/* The place of the argument `name` (NULL: the i-th one); NULL after an error. */
static KilnConfigNode **find_parameter(KilnFunctionCall *call, const Function *function,
                                       const char *name, size_t i)
{
    size_t n = 0;

    while (n < KILN_FUNCTION_PARAMETERS && function->parameters[n] != NULL &&
           (name != NULL ? strcmp(function->parameters[n], name) != 0 : n < i))
        n++;
    if (n < KILN_FUNCTION_PARAMETERS && function->parameters[n] != NULL)
        return &call->named[n];
    if (name != NULL)
        kiln_function_fail(call, "there is no argument '%s'", name);
    else
        kiln_function_fail(call, "it takes at most %zu arguments", i);
    return NULL;
}

/* Bind the arguments and run the function. */
static KilnConfigNode *run(KilnFunctionCall *call, const Function *function,
                           const KilnConfigNode *arguments)
{
    bool named = false;

    for (size_t i = 0; i < arguments->count; i++) {
        const KilnEntry *argument = &arguments->entries[i];

        if (!function->keep_quotes)
            argument->value->quote = '\0';
        if (argument->key == NULL && named)
            return kiln_function_fail(call, "an argument without a name after one with a name");
        named = argument->key != NULL;
        if (!named && function->variadic) {
            kiln_value_append(call->parser, call->args, NULL, argument->value);
            continue;
        }
        KilnConfigNode **place = find_parameter(call, function, argument->key, i);
        if (place == NULL)
            return NULL;
        if (*place != NULL)
            return kiln_function_fail(call, "'%s' is given twice", argument->key);
        *place = argument->value;
    }
    for (size_t i = 0; i < function->required; i++)
        if (call->named[i] == NULL)
            return kiln_function_fail(call, "'%s' is missing", function->parameters[i]);
    return function->run(call);
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

    if (function == NULL)
        return unknown_function(&call);
    call.args = kiln_node_new(&parser->maker, KILN_NODE_LIST);
    *ret = call.args != NULL ? run(&call, function, arguments) : NULL;
    if (parser->maker.arena->failed)
        return kiln_error_nomem(parser->err, sizeof(**ret));
    return *ret != NULL ? KILN_OK : KILN_E_SYNTAX;
}

bool kiln_function_is_called(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

    return text[n + strspn(text + n, " \t")] == '(' && find_function(text, n) != NULL;
}
