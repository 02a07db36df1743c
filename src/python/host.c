/* Calls of a Python process: messages, the wait for replies, what it prints, its end. */
#include "python/host.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "kiln/tools/clock.h"
#include "python/modules.h"
#include "python/process.h"
#include "python/shared_memory.h"
#include "registry/registry.h"

enum {
    LONGEST_MESSAGE = 1 << 28,
    PATIENCE_MS = 100, /* how often a wait looks at the clock */
    LAST_LINES = 600   /* bytes of output for the message about a process that ended */
};

struct KilnPythonHost {
    KilnPythonUse use;
    KilnPythonProcess process;
    KilnSharedMemory memory;
    KilnText output; /* what it printed since the last whole line */
    char last[LAST_LINES];
    bool over; /* it ended, or was ended */
    char why[256];
    pthread_mutex_t lock;
};

/* ---- What it prints ----------------------------------------------------------------------- */

static void print_line(KilnPythonHost *host, bool detail, const char *line)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "[%s] %s", host->use.name + strlen(KILN_PYTHON_PREFIX), line);
    if (text.data != NULL && host->use.print != NULL)
        host->use.print(host->use.ctx, detail, text.data);
    kiln_text_release(&text);
}

static void print_lines(KilnPythonHost *host, bool detail, const char *text)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        KilnText line = { 0 };

        kiln_text_append_n(&line, text, n);
        print_line(host, detail, line.data != NULL ? line.data : "");
        kiln_text_release(&line);
        text += n + (text[n] == '\n');
    }
}

static void print_output(KilnPythonHost *host)
{
    char *end;

    while (host->output.data != NULL && (end = strchr(host->output.data, '\n')) != NULL) {
        const size_t n = (size_t)(end - host->output.data) + 1;

        *end = '\0';
        snprintf(host->last, sizeof(host->last), "%s", host->output.data);
        print_line(host, false, host->output.data);
        memmove(host->output.data, host->output.data + n, host->output.length - n + 1);
        host->output.length -= n;
    }
}

/* Read what is there; false: the other end is closed. */
static bool read_output(KilnPythonHost *host)
{
    char bytes[4096];
    const ssize_t n = read(host->process.output, bytes, sizeof(bytes));

    if (n > 0)
        for (char *nul = bytes; (nul = memchr(nul, '\0', (size_t)(bytes + n - nul))) != NULL;)
            *nul = ' ';
    if (n > 0)
        kiln_text_append_n(&host->output, bytes, (size_t)n);
    print_output(host);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* What is left when the process has ended, with a last line that may be unfinished. */
static void drain_output(KilnPythonHost *host)
{
    struct pollfd poll_output = { .fd = host->process.output, .events = POLLIN };

    while (poll(&poll_output, 1, 0) > 0 && read_output(host))
        ;
    if (host->output.length > 0) {
        kiln_text_char(&host->output, '\n');
        print_output(host);
    }
}

/* ---- Its end -------------------------------------------------------------------------------- */

/* Why every later call fails. */
static KilnStatus fail(KilnPythonHost *host, KilnError *err)
{
    return kiln_error_set(err, KILN_E_PLUGIN, "%s: %s%s%s", host->use.name, host->why,
                          host->last[0] != '\0' ? "; the last that it printed: " : "", host->last);
}

static KilnStatus ended(KilnPythonHost *host, const char *what, KilnError *err)
{
    char how[64];

    host->over = true;
    kiln_python_process_wait(&host->process, how, sizeof(how));
    drain_output(host);
    snprintf(host->why, sizeof(host->why), "its Python process ended in %s (%s)", what, how);
    return fail(host, err);
}

static KilnStatus overdue(KilnPythonHost *host, const char *what, KilnError *err)
{
    host->over = true;
    kiln_python_process_end(&host->process);
    drain_output(host);
    snprintf(
        host->why, sizeof(host->why),
        "no answer from %s in %g s; its process was ended: if it may take that long, raise the "
        "component's option timeout",
        what, host->use.timeout);
    return fail(host, err);
}

/* ---- Messages ---------------------------------------------------------------------------------
 */

static KilnStatus send_bytes(KilnPythonHost *host, const char *what, const void *data, size_t size,
                             KilnError *err)
{
    const char *at = data;

    while (size > 0) {
        const ssize_t n = send(host->process.channel, at, size, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ended(host, what, err);
        at += n;
        size -= (size_t)n;
    }
    return KILN_OK;
}

/* Send a message, which is consumed. */
static KilnStatus send_message(KilnPythonHost *host, const char *what, json_t *message,
                               KilnError *err)
{
    char *text = kiln_json_dump(message, JSON_COMPACT | JSON_REAL_PRECISION(17));
    const uint32_t size = text != NULL ? (uint32_t)strlen(text) : 0;
    KilnText bytes = { 0 };
    KilnStatus status;

    json_decref(message);
    kiln_text_append_n(&bytes, (const char *)&size, sizeof(size));
    if (text != NULL)
        kiln_text_append(&bytes, text);
    status = text != NULL && !bytes.failed ? send_bytes(host, what, bytes.data, bytes.length, err)
                                           : kiln_error_nomem(err, size);
    free(text);
    kiln_text_release(&bytes);
    return status;
}

typedef struct Wait {
    const KilnPythonCall *call;
    double end; /* of the clock */
} Wait;

/* Wait until the socket has bytes, and print what the process prints meanwhile. */
static KilnStatus wait_readable(KilnPythonHost *host, const Wait *wait, KilnError *err)
{
    const char *what = wait->call->what;
    struct pollfd polls[] = { { .fd = host->process.channel, .events = POLLIN },
                              { .fd = host->process.output, .events = POLLIN } };

    for (;;) {
        const int n = poll(polls, KILN_COUNT(polls), PATIENCE_MS);

        if (n > 0 && polls[1].revents != 0 && !read_output(host))
            polls[1].fd = -1;
        if (n > 0 && polls[0].revents != 0)
            return KILN_OK;
        if (kiln_clock() > wait->end)
            return overdue(host, what, err);
        if (n == 0 && kiln_poll(wait->call->poll, host->use.name, 0, 0)) {
            host->over = true;
            kiln_python_process_end(&host->process);
            snprintf(host->why, sizeof(host->why), "interrupted in %s", what);
            return kiln_error_set(err, KILN_E_INTERRUPTED, "%s: %s", host->use.name, host->why);
        }
    }
}

static KilnStatus receive_bytes(KilnPythonHost *host, const Wait *wait, void *data, size_t size,
                                KilnError *err)
{
    char *at = data;

    while (size > 0) {
        KilnStatus status = wait_readable(host, wait, err);

        if (status < 0)
            return status;
        const ssize_t n = recv(host->process.channel, at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ended(host, wait->call->what, err);
        at += n;
        size -= (size_t)n;
    }
    return KILN_OK;
}

static KilnStatus receive_message(KilnPythonHost *host, const Wait *wait, json_t **ret,
                                  KilnError *err)
{
    uint32_t size = 0;
    KilnStatus status = receive_bytes(host, wait, &size, sizeof(size), err);

    if (status >= 0 && size > LONGEST_MESSAGE)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s returned too much", host->use.name,
                              wait->call->what);
    char *text = status >= 0 ? malloc((size_t)size + 1) : NULL;
    if (status >= 0 && text == NULL)
        return kiln_error_nomem(err, size);
    if (status >= 0)
        status = receive_bytes(host, wait, text, size, err);
    if (status >= 0 && (*ret = json_loadb(text, size, JSON_ALLOW_NUL, NULL)) == NULL)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: the reply of %s can't be read",
                                host->use.name, wait->call->what);
    free(text);
    return status;
}

/* ---- Calls --------------------------------------------------------------------------------------
 */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* An exception as an error; the traceback goes to the log. */
static KilnStatus raised(KilnPythonHost *host, const json_t *error, KilnError *err)
{
    const char *refused = json_string_value(json_object_get(error, "refused"));
    const char *file = text_of(error, "file"), *function = text_of(error, "function");

    if (refused != NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s", host->use.name, refused);
    print_lines(host, true, text_of(error, "traceback"));
    kiln_error_set(err, KILN_E_FORMAT, "%s: %s: %.1000s", host->use.name, text_of(error, "type"),
                   text_of(error, "message"));
    if (file[0] != '\0' && err != NULL) {
        const size_t n = strlen(err->text);

        snprintf(err->text + n, sizeof(err->text) - n, " (%.600s:%lld%s%s)", file,
                 (long long)json_integer_value(json_object_get(error, "line")),
                 function[0] != '\0' ? ", in " : "", function);
    }
    return KILN_E_FORMAT;
}

/* Read messages until one is the reply; the others are questions. */
static KilnStatus receive_reply(KilnPythonHost *host, const KilnPythonCall *call, json_t **ret,
                                KilnError *err)
{
    Wait wait = { call, kiln_clock() + host->use.timeout };

    for (;;) {
        json_t *message = NULL;
        KilnStatus status = receive_message(host, &wait, &message, err);
        const char *ask = json_string_value(json_object_get(message, "ask"));

        if (status < 0 || ask == NULL || call->answer == NULL) {
            *ret = message;
            return status;
        }
        kiln_shared_memory_clear(&host->memory);
        json_t *answer = call->answer(call->ctx, ask, message);
        status = answer != NULL ? send_message(host, call->what, answer, err)
                                : kiln_error_nomem(err, 0);
        json_decref(message);
        if (status < 0)
            return status;
    }
}

KilnStatus kiln_python_call(KilnPythonHost *host, const KilnPythonCall *call, json_t **ret,
                            KilnError *err)
{
    json_t *reply = NULL;
    KilnStatus status;

    if (host->over || call->request == NULL) {
        json_decref(call->request);
        return host->over ? fail(host, err) : kiln_error_nomem(err, 0);
    }
    status = send_message(host, call->what, call->request, err);
    if (status >= 0)
        status = receive_reply(host, call, &reply, err);
    kiln_shared_memory_clear(&host->memory);
    const json_t *error = json_object_get(reply, "error");
    if (status >= 0 && error != NULL)
        status = raised(host, error, err);
    if (status < 0) {
        json_decref(reply);
        return status;
    }
    *ret = reply;
    return KILN_OK;
}

void kiln_python_host_lock(KilnPythonHost *host)
{
    pthread_mutex_lock(&host->lock);
}

void kiln_python_host_unlock(KilnPythonHost *host)
{
    pthread_mutex_unlock(&host->lock);
}

/* ---- Its life -----------------------------------------------------------------------------------
 */

void kiln_python_host_end(KilnPythonHost *host)
{
    if (host == NULL)
        return;
    if (host->process.pid > 0) {
        char how[64];

        if (!host->over &&
            send_message(host, "its end", json_pack("{s:s}", "call", "end"), NULL) >= 0)
            kiln_python_process_wait(&host->process, how, sizeof(how));
        kiln_python_process_end(&host->process);
        drain_output(host);
    }
    kiln_python_process_close(&host->process);
    kiln_shared_memory_close(&host->memory);
    kiln_text_release(&host->output);
    pthread_mutex_destroy(&host->lock);
    free(host);
}

KilnStatus kiln_python_host_start(const KilnPythonUse *use, KilnPythonHost **ret, KilnError *err)
{
    KilnPythonHost *host = calloc(1, sizeof(*host));

    if (host == NULL)
        return kiln_error_nomem(err, sizeof(*host));
    host->use = *use;
    host->process = (KilnPythonProcess) { .channel = -1, .output = -1 };
    (void)pthread_mutex_init(&host->lock, NULL);
    KilnStatus status = kiln_shared_memory_open(&host->memory, err);
    if (status >= 0)
        status = kiln_python_process_start(use->python, use->name, host->memory.fd, &host->process,
                                           err);
    if (status >= 0)
        status = send_message(host, "its start", kiln_python_modules(use->folder), err);
    if (status < 0) {
        kiln_python_host_end(host);
        return status;
    }
    *ret = host;
    return KILN_OK;
}

/* ---- Arrays
 * --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    KilnDType dtype;
} types[] = { { "f32", KILN_F32 },
              { "f64", KILN_F64 },
              { "i32", KILN_I32 },
              { "i64", KILN_I64 },
              { "u8", KILN_U8 } };

static bool find_type(const char *name, KilnPythonArray *array)
{
    for (size_t i = 0; i < KILN_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0) {
            array->dtype = types[i].dtype;
            return true;
        }
    array->text = strcmp(name, "text") == 0;
    return array->text;
}

KilnStatus kiln_python_array(KilnPythonHost *host, const json_t *place, KilnPythonArray *ret,
                             KilnError *err)
{
    const char *type = json_string_value(json_array_get(place, 0));
    const json_t *shape = json_array_get(place, 1);
    const json_int_t at = json_integer_value(json_array_get(place, 2));
    const json_int_t bytes = json_integer_value(json_array_get(place, 3));
    KilnPythonArray array = { .bytes = (size_t)bytes };

    if (type == NULL || !find_type(type, &array) || at < 0 || bytes < 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: an array that can't be read",
                              host->use.name);
    if (json_array_size(shape) > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "an array of %zu axes; expected at most %d",
                              json_array_size(shape), KILN_MAX_RANK);
    array.shape.rank = (int)json_array_size(shape);
    for (int i = 0; i < array.shape.rank; i++)
        array.shape.dim[i] = json_integer_value(json_array_get(shape, (size_t)i));
    const int64_t count = array.text ? 0 : kiln_shape_count(&array.shape);
    if (count < 0 || count > INT32_MAX ||
        (!array.text && (size_t)count * kiln_dtype_size(array.dtype) != array.bytes))
        return kiln_error_set(err, KILN_E_SHAPE, "an array that is too large");
    array.data = kiln_shared_memory_at(&host->memory, (size_t)at, array.bytes);
    if (array.data == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: an array outside of its memory",
                              host->use.name);
    *ret = array;
    return KILN_OK;
}

json_t *kiln_python_put(KilnPythonHost *host, KilnDType dtype, const KilnShape *shape,
                        const void *data)
{
    const size_t bytes = (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
    size_t at = 0;
    json_t *axes = json_array();

    for (int i = 0; i < shape->rank; i++)
        kiln_json_add(&axes, json_integer(shape->dim[i]));
    if (!kiln_shared_memory_put(&host->memory, data, bytes, &at)) {
        json_decref(axes);
        return NULL;
    }
    return json_pack("[s, o, I, I]", kiln_dtype_name(dtype), axes, (json_int_t)at,
                     (json_int_t)bytes);
}
