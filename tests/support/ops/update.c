/* Samples of updates in place, and of what clips gradients. */
#include "tests/support/ops/case.h"

BUILD(build_ema)
{
    UNUSED_ARG;
    kiln_ema_update(leaf[0], leaf[1], 0.1);
    return NULL;
}

static const Case cases_ema_update[] = {
    { "ema_update", build_ema, "vf", .shape = { SHAPE(37), SHAPE(37) } },
};
SAMPLES(ema_update)

BUILD(build_lerp)
{
    UNUSED_ARG;
    kiln_lerp_update(leaf[0], leaf[1], leaf[2]);
    return NULL;
}

/* Weight 1 copies, even over what is no number. */
BUILD(build_lerp_copy)
{
    static const float one = 1.0f;

    UNUSED_ARG;
    kiln_lerp_update(leaf[0], leaf[1],
                     kiln_graph_input(leaf[0]->graph, KILN_F32, KILN_SCALAR, &one));
    return NULL;
}

/* Weights above 1 go beyond the value. */
BUILD(build_lerp_beyond)
{
    static const float weight = 1.5f;

    UNUSED_ARG;
    kiln_lerp_update(leaf[0], leaf[1],
                     kiln_graph_input(leaf[0]->graph, KILN_F32, KILN_SCALAR, &weight));
    return NULL;
}

static const Case cases_lerp_update[] = {
    { "lerp_update", build_lerp, "vfp", .shape = { SHAPE(40009), SHAPE(40009), SCALAR } },
    { "lerp_update, axes", build_lerp, "vfp", .shape = { SHAPE(3, 7), SHAPE(3, 7), SCALAR },
      .skips = true },
    { "lerp_update, copy", build_lerp_copy, "vf", .shape = { SHAPE(19), SHAPE(19) } },
    { "lerp_update, beyond", build_lerp_beyond, "vf", .shape = { SHAPE(19), SHAPE(19) } },
};
SAMPLES(lerp_update)

BUILD(build_clamp_update)
{
    kiln_clamp_update(leaf[0], (double)arg[0] / 10.0);
    return NULL;
}

static const Case cases_clamp_update[] = {
    { "clamp_update", build_clamp_update, "v", .shape = { SHAPE(101) }, .arg = { 5 } },
    { "clamp_update, threads", build_clamp_update, "v", .shape = { SHAPE(40009) }, .arg = { 7 } },
};
SAMPLES(clamp_update)

BUILD(build_increment)
{
    UNUSED_ARG;
    kiln_increment(leaf[0]);
    return NULL;
}

static const Case cases_increment[] = {
    { "increment", build_increment, "c", .shape = { SCALAR } },
};
SAMPLES(increment)

BUILD(build_l2_norm)
{
    UNUSED_ARG;
    return kiln_l2_norm(leaf[0]);
}

static const Case cases_l2_norm[] = {
    { "l2_norm", build_l2_norm, "f", .shape = { SHAPE(5, 7) } },
    { "l2_norm, one", build_l2_norm, "f", .shape = { SCALAR } },
    { "l2_norm, pieces", build_l2_norm, "f", .shape = { SHAPE(100003) } },
};
SAMPLES(l2_norm)

BUILD(build_clip_factor)
{
    return kiln_clip_factor(leaf[0], (double)arg[0] / 100.0);
}

static const Case cases_clip_factor[] = {
    { "clip_factor", build_clip_factor, "p", .shape = { SCALAR }, .arg = { 5 } },
    { "clip_factor, small", build_clip_factor, "p", .shape = { SCALAR }, .arg = { 500 } },
};
SAMPLES(clip_factor)

/* ---- Optimizers ---------------------------------------------------------------- */

enum { FIRST = 1, FLAG = 2, OTHER = 4, NORMS = 8 };

/* Leaves: parameters, gradients, scale, slots, norms (of three parts of 100003 elements, with
 * NORMS in arg[2]). arg[0] is the number of slots,
 * arg[1] 0: one segment without decay, 1 and 2: four segments of 101 and of 100003 elements,
 * one of which is left alone; arg[2] what the case makes of it; arg[3] which of its
 * slots (bits) are NULL. */
static KilnFlat flat_of(KilnTensor *const *leaf, const int64_t *arg, const float *hyper, int64_t n)
{
    static const int64_t ends[2][4] = { { 5, 37, 64, 101 }, { 5, 17000, 17001, 100003 } };
    static const float rates[] = { 1.0f, 0.01f, 0.0f, 0.5f, 0.1f, 0.0f, 2.0f, 0.3f };
    KilnGraph *graph = leaf[0]->graph;
    KilnFlat flat = {
        .param = leaf[0],
        .grad = leaf[1],
        .scale = leaf[2],
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n), hyper),
    };

    if ((arg[2] & NORMS) != 0) {
        static const int64_t parts[] = { 17, 40000, 100003 };

        flat.part_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(3), parts);
        flat.norms = leaf[3 + arg[0]];
    }
    for (int64_t i = 0; i < arg[0]; i++)
        flat.slots[i] = (arg[3] >> i & 1) != 0 ? NULL : leaf[3 + i];
    /* The segments fit only these sizes. */
    if (arg[1] > 0 && kiln_tensor_dim(leaf[0], 0) == ends[arg[1] - 1][3]) {
        flat.segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(4), ends[arg[1] - 1]);
        flat.rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(4, 2), rates);
    }
    return flat;
}

#define FLAT(n) .shape = { SHAPE(n), SHAPE(n), SCALAR, SHAPE(n), SHAPE(n), SHAPE(n), SHAPE(n) }

#define FLAT_NORMS0(n) .shape = { SHAPE(n), SHAPE(n), SCALAR, SHAPE(3) }
#define FLAT_NORMS1(n) .shape = { SHAPE(n), SHAPE(n), SCALAR, SHAPE(n), SHAPE(3) }
#define FLAT_NORMS2(n) .shape = { SHAPE(n), SHAPE(n), SCALAR, SHAPE(n), SHAPE(n), SHAPE(3) }

/* Some rows of an embedding, or all (with FLAG in arg[2]). */
static KilnFlat rows_of(KilnTensor *const *leaf, const int64_t *arg, const float *hyper, int64_t n)
{
    static const int32_t some[1 + 2 * 4096] = { 2, 2, 0 }, one[1 + 2 * 2] = { 1 };
    static const int32_t all[1 + 2 * 4096] = { -1 };
    static const float rates[] = { 0.5f, 0.1f };
    const int64_t rows = kiln_tensor_dim(leaf[0], 0);
    KilnGraph *graph = leaf[0]->graph;
    KilnFlat flat = flat_of(leaf, arg, hyper, n);

    flat.segment_ends = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(1 + 2 * rows),
                                         (arg[2] & FLAG) != 0 ? all
                                         : rows < 3           ? one
                                                              : some);
    flat.rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, 2), rates);
    return flat;
}

#define FLAT_ROWS(...)                                                                             \
    .shape = { SHAPE(__VA_ARGS__), SHAPE(__VA_ARGS__), SCALAR,                                     \
               SHAPE(__VA_ARGS__), SHAPE(__VA_ARGS__), SHAPE(__VA_ARGS__) }

BUILD(build_sgd_rows)
{
    static const float hyper[] = { 0.1f, 0.0f };
    KilnFlat flat = rows_of(leaf, arg, hyper, 2);

    kiln_sgd_update(&flat, (KilnSgd) { 0 });
    return NULL;
}

BUILD(build_sgd)
{
    static const float hyper[2][2] = { { 0.1f, 0.0f }, { 0.1f, 1.0f } };
    const KilnSgd sgd = {
        .momentum = arg[0] > 0 ? 0.9 : 0.0,
        .dampening = (arg[2] & OTHER) != 0 ? 0.2 : 0.0,
        .nesterov = (arg[2] & FLAG) != 0,
    };
    KilnFlat flat = flat_of(leaf, arg, hyper[arg[2] & FIRST], 2);

    kiln_sgd_update(&flat, sgd);
    return NULL;
}

static const Case cases_sgd_update[] = {
    { "sgd_update", build_sgd, "vfp", FLAT(101) },
    { "sgd_update, segments", build_sgd, "vfp", FLAT(100003), .arg = { 0, 2 } },
    { "sgd_update, momentum", build_sgd, "vfpv", FLAT(100003), .arg = { 1, 2, FIRST } },
    { "sgd_update, norms", build_sgd, "vfpv", FLAT_NORMS0(100003), .arg = { 0, 0, NORMS } },
    { "sgd_update, segments, norms", build_sgd, "vfpvv", FLAT_NORMS1(100003),
      .arg = { 1, 2, FIRST | NORMS } },
    { "sgd_update, dampening", build_sgd, "vfpv", FLAT(101), .arg = { 1, 1, OTHER } },
    { "sgd_update, rows", build_sgd_rows, "vfp", FLAT_ROWS(11, 7) },
    { "sgd_update, all rows", build_sgd_rows, "vfp", FLAT_ROWS(401, 70), .arg = { 0, 0, FLAG } },
    { "sgd_update, nesterov", build_sgd, "vfpv", FLAT(101), .arg = { 1, 0, FLAG } },
};
SAMPLES(sgd_update)

static const float adam_hyper[] = { 0.01f, 0.271f, 0.002997f };

BUILD(build_adam)
{
    const KilnAdam adam = {
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .decoupled = (arg[2] & FLAG) != 0,
        .amsgrad = arg[0] == 3,
    };
    KilnFlat flat = flat_of(leaf, arg, adam_hyper, 3);

    kiln_adam_update(&flat, adam);
    return NULL;
}

BUILD(build_adam_rows)
{
    const KilnAdam adam = { .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .amsgrad = arg[0] == 3 };
    KilnFlat flat = rows_of(leaf, arg, adam_hyper, 3);

    kiln_adam_update(&flat, adam);
    return NULL;
}

static const Case cases_adam_update[] = {
    { "adam_update", build_adam, "vfpvv", FLAT(40009), .arg = { 2 } },
    { "adam_update, segments", build_adam, "vfpvv", FLAT(101), .arg = { 2, 1 } },
    { "adam_update, norms", build_adam, "vfpvvv", FLAT_NORMS2(100003), .arg = { 2, 2, NORMS } },
    { "adam_update, decoupled", build_adam, "vfpvv", FLAT(100003), .arg = { 2, 2, FLAG } },
    { "adam_update, rows", build_adam_rows, "vfpvv", FLAT_ROWS(11, 7), .arg = { 2 } },
    { "adam_update, rows, amsgrad", build_adam_rows, "vfpvvv", FLAT_ROWS(5, 3, 4), .arg = { 3 } },
    { "adam_update, all rows", build_adam_rows, "vfpvv", FLAT_ROWS(401, 70),
      .arg = { 2, 0, FLAG } },
    { "adam_update, amsgrad", build_adam, "vfpvvv", FLAT(101), .arg = { 3, 1 } },
};
SAMPLES(adam_update)

BUILD(build_rmsprop)
{
    static const float hyper[] = { 0.01f };
    const KilnRmsprop rmsprop = {
        .alpha = 0.99,
        .eps = (arg[2] & FLAG) != 0 ? 1.0 : 1e-8, /* the difference of squares is inexact */
        .momentum = (arg[3] & 2) != 0 ? 0.0 : 0.8,
        .centered = (arg[2] & FLAG) != 0,
    };
    KilnFlat flat = flat_of(leaf, arg, hyper, 1);

    kiln_rmsprop_update(&flat, rmsprop);
    return NULL;
}

static const Case cases_rmsprop_update[] = {
    { "rmsprop_update", build_rmsprop, "vfpvvv", FLAT(101), .arg = { 3, 1, 0, 6 } },
    { "rmsprop_update, momentum", build_rmsprop, "vfpvvv", FLAT(40009), .arg = { 3, 0, 0, 4 } },
    { "rmsprop_update, centered", build_rmsprop, "vfpvvv", FLAT(101), .arg = { 3, 1, FLAG, 2 },
      .tolerance = 1e-3 },
    { "rmsprop_update, both", build_rmsprop, "vfpvvv", FLAT(100003), .arg = { 3, 2, FLAG },
      .tolerance = 1e-3 },
};
SAMPLES(rmsprop_update)

BUILD(build_adagrad)
{
    static const float hyper[2][2] = { { 0.01f, 0.0f }, { 0.01f, 1.0f } };
    const KilnAdagrad adagrad = { .initial_accumulator_value = 0.1, .eps = 1e-10 };
    KilnFlat flat = flat_of(leaf, arg, hyper[arg[2] & FIRST], 2);

    kiln_adagrad_update(&flat, adagrad);
    return NULL;
}

BUILD(build_adagrad_rows)
{
    static const float hyper[] = { 0.01f, 0.0f };
    const KilnAdagrad adagrad = { .initial_accumulator_value = 0.4, .eps = 1e-10 };
    KilnFlat flat = rows_of(leaf, arg, hyper, 2);

    kiln_adagrad_update(&flat, adagrad);
    return NULL;
}

static const Case cases_adagrad_update[] = {
    { "adagrad_update", build_adagrad, "vfpv", FLAT(101), .arg = { 1, 1 } },
    { "adagrad_update, rows", build_adagrad_rows, "vfpv", FLAT_ROWS(11, 7), .arg = { 1 } },
    { "adagrad_update, first", build_adagrad, "vfpv", FLAT(100003), .arg = { 1, 2, FIRST } },
};
SAMPLES(adagrad_update)

BUILD(build_lamb)
{
    const KilnLamb lamb = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .always_adapt = (arg[2] & FLAG) != 0
    };
    KilnFlat flat = flat_of(leaf, arg, adam_hyper, 3);

    kiln_lamb_update(&flat, lamb);
    return NULL;
}

static const Case cases_lamb_update[] = {
    { "lamb_update", build_lamb, "vfpvv", FLAT(101), .arg = { 2, 1 } },
    { "lamb_update, one segment", build_lamb, "vfpvv", FLAT(40009), .arg = { 2, 0, FLAG } },
    { "lamb_update, norms", build_lamb, "vfpvvv", FLAT_NORMS2(100003),
      .arg = { 2, 2, FLAG | NORMS } },
    { "lamb_update, pieces", build_lamb, "vfpvv", FLAT(100003), .arg = { 2, 2, FLAG } },
};
SAMPLES(lamb_update)

BUILD(build_lion)
{
    static const float hyper[] = { 0.01f };
    const KilnLion lion = { .beta1 = 0.9, .beta2 = 0.99 };
    KilnFlat flat = flat_of(leaf, arg, hyper, 1);

    kiln_lion_update(&flat, lion);
    return NULL;
}

static const Case cases_lion_update[] = {
    { "lion_update", build_lion, "vfpv", FLAT(101), .arg = { 1, 1 } },
    { "lion_update, threads", build_lion, "vfpv", FLAT(100003), .arg = { 1, 2 } },
};
SAMPLES(lion_update)

BUILD(build_adan)
{
    static const float hyper[2][5] = { { 0.01f, 0.0588f, 0.2213f, 0.0297f, 0.0f },
                                       { 0.01f, 0.02f, 0.08f, 0.01f, 1.0f } };
    const KilnAdan adan = {
        .beta1 = 0.98, .beta2 = 0.92, .beta3 = 0.99, .eps = 1e-8, .no_prox = (arg[2] & FLAG) != 0
    };
    KilnFlat flat = flat_of(leaf, arg, hyper[arg[2] & FIRST], 5);

    kiln_adan_update(&flat, adan);
    return NULL;
}

static const Case cases_adan_update[] = {
    { "adan_update", build_adan, "vfpvvvv", FLAT(101), .arg = { 4, 1 } },
    { "adan_update, first", build_adan, "vfpvvvv", FLAT(101), .arg = { 4, 0, FIRST } },
    { "adan_update, no_prox", build_adan, "vfpvvvv", FLAT(100003), .arg = { 4, 2, FLAG } },
};
SAMPLES(adan_update)
