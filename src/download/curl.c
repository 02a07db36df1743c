/* libcurl: loading it, and everything that is called in it. This is the only file that knows it. */
#ifdef KILN_WITH_CURL

#include "download/transfer.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/system/file.h"

/* Slower than that for so long is a failure. */
static const long stalled_bytes = 1, stalled_seconds = 30, connect_seconds = 30, redirections = 10;

/* ---- The library ----------------------------------------------------------------- */

#define FUNCTIONS(X)                                                                               \
    X(curl_global_init)                                                                            \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_perform)                                                                           \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_easy_cleanup)

/* Written once, by load. The header has macros of some of these names, with arguments. */
static struct {
    bool loaded;
#define MEMBER(name) __typeof__(name) *p_##name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* POSIX lets a function's address pass through dlsym's object pointer; C wants a copy of the bytes.
 */
static bool find(void *library, const char *name, void *ret_function, size_t size)
{
    void *address = dlsym(library, name);

    memcpy(ret_function, &address, size);
    return address != NULL;
}

static void load(void)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
    void *library = NULL;
    bool all = true;

    for (size_t i = 0; i < KILN_COUNT(names) && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
#define FIND(name) all = all && find(library, #name, &lib.p_##name, sizeof(lib.p_##name));
    FUNCTIONS(FIND)
#undef FIND
    lib.loaded = all && lib.p_curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!lib.loaded)
        dlclose(library);
}

KilnStatus kiln_transfer_supported(KilnError *err)
{
    if (pthread_once(&once, load) != 0 || !lib.loaded)
        return kiln_error_set(err, KILN_E_MISSING,
                              "libcurl.so.4 cannot be loaded; install libcurl (Debian's package is "
                              "libcurl4)");
    return KILN_OK;
}

/* ---- A request ------------------------------------------------------------------- */

typedef struct Request {
    KilnTransfer *transfer;
    CURL *handle;
    int write_errno;
    bool interrupted;
    char message[CURL_ERROR_SIZE];
} Request;

static size_t put(char *data, size_t size, size_t n, void *ctx)
{
    Request *request = ctx;

    if (kiln_fd_write(request->transfer->fd, data, size * n))
        return size * n;
    request->write_errno = errno;
    return 0;
}

static int show(void *ctx, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up)
{
    Request *request = ctx;
    const KilnTransfer *transfer = request->transfer;

    (void)up_total;
    (void)up;
    /* Complete only when the connection says so. */
    if (done >= total)
        done = total > 0 ? total - 1 : done;
    request->interrupted = kiln_poll(transfer->poll, transfer->what, transfer->have + done,
                                     total > 0 ? transfer->have + total : 0);
    return request->interrupted;
}

static bool ask(Request *request)
{
    const KilnTransfer *transfer = request->transfer;
    CURL *const handle = request->handle;
    bool good = true;

#define SET(option, value) good = good && lib.p_curl_easy_setopt(handle, option, value) == CURLE_OK
    SET(CURLOPT_URL, transfer->url);
    SET(CURLOPT_USERAGENT, "kiln");
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 1L);
    SET(CURLOPT_MAXREDIRS, redirections);
    SET(CURLOPT_FAILONERROR, 1L);
    SET(CURLOPT_CONNECTTIMEOUT, connect_seconds);
    SET(CURLOPT_LOW_SPEED_LIMIT, stalled_bytes);
    SET(CURLOPT_LOW_SPEED_TIME, stalled_seconds);
    SET(CURLOPT_RESUME_FROM_LARGE, (curl_off_t)transfer->have);
    SET(CURLOPT_WRITEFUNCTION, put);
    SET(CURLOPT_WRITEDATA, request);
    SET(CURLOPT_XFERINFOFUNCTION, show);
    SET(CURLOPT_XFERINFODATA, request);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_ERRORBUFFER, request->message);
#undef SET
    return good;
}

static bool may_pass(CURLcode code, long http)
{
    switch (code) {
    case CURLE_HTTP_RETURNED_ERROR:
        return http == 408 || http == 429 || http >= 500;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

static KilnStatus failed(Request *request, CURLcode code, KilnError *err)
{
    KilnTransfer *transfer = request->transfer;
    long http = 0;

    (void)lib.p_curl_easy_getinfo(request->handle, CURLINFO_RESPONSE_CODE, &http);
    transfer->may_pass = may_pass(code, http);
    transfer->from_start = code == CURLE_RANGE_ERROR;
    if (http == 416 && transfer->have > 0)
        return KILN_OK; /* the server has nothing beyond these bytes */
    if (request->interrupted)
        return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted while %s", transfer->what);
    if (request->write_errno != 0)
        return kiln_error_set(err, KILN_E_IO, "cannot write: %s", strerror(request->write_errno));
    if (code == CURLE_HTTP_RETURNED_ERROR)
        return kiln_error_set(err, KILN_E_IO, "%s: the server answers with HTTP status %ld",
                              transfer->url, http);
    return kiln_error_set(err, KILN_E_IO, "%s: %s", transfer->url,
                          request->message[0] != '\0' ? request->message
                                                      : lib.p_curl_easy_strerror(code));
}

KilnStatus kiln_transfer(KilnTransfer *transfer, KilnError *err)
{
    Request request = { .transfer = transfer };
    KilnStatus status = kiln_transfer_supported(err);
    CURLcode code = CURLE_OUT_OF_MEMORY;

    if (status < 0)
        return status;
    transfer->may_pass = transfer->from_start = false;
    request.handle = lib.p_curl_easy_init();
    if (request.handle == NULL)
        return kiln_error_nomem(err, sizeof(request));
    if (ask(&request))
        code = lib.p_curl_easy_perform(request.handle);
    status = code == CURLE_OK ? KILN_OK : failed(&request, code, err);
    lib.p_curl_easy_cleanup(request.handle);
    return status;
}

#else
typedef int kiln_curl_left_out; /* ISO C wants a declaration in every file */
#endif
