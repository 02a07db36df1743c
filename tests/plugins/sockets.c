/* The strategy `sockets`: processes of one machine that train together. Rank 0 listens on a socket
 * in a folder, the others connect; all bytes go through rank 0, which adds in the order of the
 * ranks. Rank and world are the variables RANK and WORLD_SIZE, as torchrun sets them. */
#include "kiln.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PART = 1 << 16, MAX_RANKS = 64 };

typedef struct Opts {
    char *dir;
    double timeout;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_PATH(Opts, dir, ".", "folder for the socket"),
    KILN_FIELD_DURATION(Opts, timeout, "60s", 0.1, 1e6, "how long to wait for another rank"),
    KILN_FIELD_END,
};

typedef struct State {
    int rank, world;
    int peers[MAX_RANKS]; /* connection + 1; of ranks above 0 only that to rank 0 */
} State;

/* ---- One connection ------------------------------------------------------------------------ */

static KilnStatus ended(int rank, KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO, "rank %d ended", rank);
}

/* Wait until the connection to `rank` can be read, or written. */
static KilnStatus await(KilnInstance *self, int rank, short events, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const double end = kiln_clock() + opts->timeout;

    for (;;) {
        struct pollfd one = { .fd = state->peers[rank] - 1, .events = events };
        const double left = end - kiln_clock();
        const int n = poll(&one, 1, left > 0.0 ? (int)(1e3 * left) : 0);

        if (n > 0)
            return KILN_OK;
        if (n == 0 || errno != EINTR)
            return kiln_error_set(err, KILN_E_IO, "rank %d did not answer in %g s", rank,
                                  opts->timeout);
    }
}

static KilnStatus send_to(KilnInstance *self, int rank, const void *data, size_t bytes,
                          KilnError *err)
{
    const State *state = kiln_state(self);

    for (size_t at = 0; at < bytes;) {
        if (await(self, rank, POLLOUT, err) < 0)
            return KILN_E_IO;
        ssize_t n = send(state->peers[rank] - 1, (const char *)data + at, bytes - at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return ended(rank, err);
        at += n > 0 ? (size_t)n : 0;
    }
    return KILN_OK;
}

static KilnStatus receive_from(KilnInstance *self, int rank, void *data, size_t bytes,
                               KilnError *err)
{
    const State *state = kiln_state(self);

    for (size_t at = 0; at < bytes;) {
        if (await(self, rank, POLLIN, err) < 0)
            return KILN_E_IO;
        ssize_t n = recv(state->peers[rank] - 1, (char *)data + at, bytes - at, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return ended(rank, err);
        at += n > 0 ? (size_t)n : 0;
    }
    return KILN_OK;
}

/* ---- Connecting ---------------------------------------------------------------------------- */

static KilnStatus read_number(const char *name, int least, int most, int *ret, KilnError *err)
{
    const char *text = getenv(name);
    char *end;

    errno = 0;
    const long value = text != NULL ? strtol(text, &end, 10) : -1;
    if (text == NULL || errno != 0 || *text == '\0' || *end != '\0' || value < least ||
        value > most)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s=%s: expected a number from %d to %d in the environment", name,
                              text != NULL ? text : "", least, most);
    *ret = (int)value;
    return KILN_OK;
}

static KilnStatus accept_all(KilnInstance *self, const struct sockaddr_un *address, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    unlink(address->sun_path);
    /* The place of rank 0 itself holds the socket that listens. */
    state->peers[0] = socket(AF_UNIX, SOCK_STREAM, 0) + 1;
    if (state->peers[0] < 1 ||
        bind(state->peers[0] - 1, (const struct sockaddr *)address, sizeof(*address)) != 0 ||
        listen(state->peers[0] - 1, MAX_RANKS) != 0)
        return kiln_error_errno(err, address->sun_path);
    for (int i = 1; i < state->world && status >= 0; i++) {
        int32_t rank = 0;

        if (await(self, 0, POLLIN, err) < 0)
            return kiln_error_set(err, KILN_E_IO, "only %d of %d ranks are there", i, state->world);
        const int peer = accept(state->peers[0] - 1, NULL, NULL);
        if (peer < 0 || recv(peer, &rank, sizeof(rank), MSG_WAITALL) != sizeof(rank) || rank < 1 ||
            rank >= state->world || state->peers[rank] != 0)
            return kiln_error_set(err, KILN_E_IO, "a rank did not say which it is");
        state->peers[rank] = peer + 1;
    }
    return status;
}

static KilnStatus connect_to_first(KilnInstance *self, const struct sockaddr_un *address,
                                   KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const double end = kiln_clock() + opts->timeout;
    const struct timespec wait = { .tv_nsec = 10000000 };
    const int32_t rank = state->rank;

    state->peers[0] = socket(AF_UNIX, SOCK_STREAM, 0) + 1;
    while (connect(state->peers[0] - 1, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        if (kiln_clock() > end)
            return kiln_error_set(err, KILN_E_IO, "rank 0 did not listen at %s in %g s",
                                  address->sun_path, opts->timeout);
        nanosleep(&wait, NULL);
    }
    return send_to(self, 0, &rank, sizeof(rank), err);
}

static KilnStatus setup(KilnInstance *self, int *ret_rank, int *ret_world, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    KilnStatus status = read_number("WORLD_SIZE", 1, MAX_RANKS, &state->world, err);

    if (status >= 0)
        status = read_number("RANK", 0, state->world - 1, &state->rank, err);
    if (status < 0)
        return status;
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/rank0", opts->dir) >=
        (int)sizeof(address.sun_path))
        return kiln_error_set(err, KILN_E_RANGE, "dir=%s: the path is too long for a socket",
                              opts->dir);
    *ret_rank = state->rank;
    *ret_world = state->world;
    return state->rank == 0 ? accept_all(self, &address, err)
                            : connect_to_first(self, &address, err);
}

static void teardown(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int i = 0; i < MAX_RANKS; i++) {
        if (state->peers[i] > 0)
            close(state->peers[i] - 1);
        state->peers[i] = 0;
    }
}

/* ---- Collective calls ----------------------------------------------------------------------- */

static float wide(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint16_t narrow(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void add(void *to, const void *from, size_t bytes, KilnDType dtype)
{
    for (size_t i = 0; dtype == KILN_F32 && i < bytes / sizeof(float); i++)
        ((float *)to)[i] += ((const float *)from)[i];
    for (size_t i = 0; dtype == KILN_F64 && i < bytes / sizeof(double); i++)
        ((double *)to)[i] += ((const double *)from)[i];
    for (size_t i = 0; dtype == KILN_BF16 && i < bytes / sizeof(uint16_t); i++)
        ((uint16_t *)to)[i] = narrow(wide(((uint16_t *)to)[i]) + wide(((const uint16_t *)from)[i]));
}

/* Rank 0's bytes to all. */
static KilnStatus spread(KilnInstance *self, void *data, size_t bytes, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    if (state->rank > 0)
        return receive_from(self, 0, data, bytes, err);
    for (int r = 1; r < state->world && status >= 0; r++)
        status = send_to(self, r, data, bytes, err);
    return status;
}

static KilnStatus all_reduce(KilnInstance *self, void *data, int64_t count, KilnDType dtype,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const size_t bytes = (size_t)count * kiln_dtype_size(dtype);
    double part[PART / sizeof(double)];
    KilnStatus status = state->rank > 0 ? send_to(self, 0, data, bytes, err) : KILN_OK;

    for (int r = 1; r < state->world && state->rank == 0 && status >= 0; r++)
        for (size_t at = 0; at < bytes && status >= 0; at += PART) {
            const size_t n = bytes - at < PART ? bytes - at : PART;

            status = receive_from(self, r, part, n, err);
            if (status >= 0)
                add((char *)data + at, part, n, dtype);
        }
    return status >= 0 ? spread(self, data, bytes, err) : status;
}

static KilnStatus all_gather(KilnInstance *self, const void *mine, size_t bytes, void *all,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStatus status = state->rank > 0 ? send_to(self, 0, mine, bytes, err) : KILN_OK;

    if (state->rank == 0)
        memcpy(all, mine, bytes);
    for (int r = 1; r < state->world && state->rank == 0 && status >= 0; r++)
        status = receive_from(self, r, (char *)all + (size_t)r * bytes, bytes, err);
    return status >= 0 ? spread(self, all, (size_t)state->world * bytes, err) : status;
}

static KilnStatus broadcast(KilnInstance *self, void *data, size_t bytes, int root, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    if (root != 0 && state->rank == root)
        status = send_to(self, 0, data, bytes, err);
    else if (root != 0 && state->rank == 0)
        status = receive_from(self, root, data, bytes, err);
    return status >= 0 ? spread(self, data, bytes, err) : status;
}

static const KilnStrategyOps ops = {
    .setup = setup,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .teardown = teardown,
};

static const KilnComponent component = {
    .kind = KILN_KIND_STRATEGY,
    .name = "sockets",
    .summary = "Processes of one machine, through a socket in a folder",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.strategy = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)
