/* Samples of operations that move elements or repeat them. */
#include "tests/support/ops/case.h"

BUILD(build_reshape)
{
    return kiln_reshape(leaf[0], KILN_SHAPE(arg[0], arg[1]));
}

BUILD(build_flatten)
{
    UNUSED_ARG;
    return kiln_flatten(leaf[0]);
}

static const Case cases_reshape[] = {
    { "reshape", build_reshape, "g", .shape = { SHAPE(2, 3, 5) }, .arg = { 5, 6 } },
    { "reshape, one size inferred", build_reshape, "g", .shape = { SHAPE(2, 6) },
      .arg = { 4, -1 } },
    { "flatten, one row high", build_flatten, "g", .shape = { SHAPE(2, 3, 1, 2) } },
    { "flatten", build_flatten, "g", .shape = { SHAPE(2, 3, 2, 1) } },
};
SAMPLES(reshape)

BUILD(build_permute)
{
    const int order[] = { (int)arg[0], (int)arg[1], (int)arg[2], (int)arg[3] };

    return kiln_permute(leaf[0], order);
}

BUILD(build_transpose)
{
    return kiln_transpose(leaf[0], (int)arg[0], (int)arg[1]);
}

/* The common ones: heads, columns, channels; tiles that are full and not. */
static const Case cases_permute[] = {
    { "permute, transpose", build_permute, "g", .shape = { SHAPE(5, 7) }, .arg = { 1, 0 } },
    { "permute, small to NCHW", build_permute, "g", .shape = { SHAPE(2, 3, 4, 2) },
      .arg = { 0, 3, 1, 2 } },
    { "permute, no axis stays", build_permute, "g", .shape = { SHAPE(2, 3, 4, 2) },
      .arg = { 2, 0, 3, 1 } },
    { "permute, to NCHW", build_permute, "g", .shape = { SHAPE(3, 5, 7, 11) },
      .arg = { 0, 3, 1, 2 } },
    { "permute, to NCHW, tiles", build_permute, "g", .shape = { SHAPE(2, 16, 8, 48) },
      .arg = { 0, 3, 1, 2 } },
    { "permute, to NHWC", build_permute, "g", .shape = { SHAPE(2, 19, 9, 33) },
      .arg = { 0, 2, 3, 1 } },
    { "permute, heads", build_permute, "g", .shape = { SHAPE(2, 37, 3, 16) },
      .arg = { 0, 2, 1, 3 } },
    { "permute, large", build_permute, "g", .shape = { SHAPE(31, 37, 41, 2) },
      .arg = { 3, 1, 0, 2 } },
    { "permute, one size stays where it is", build_permute, "g", .shape = { SHAPE(1, 3, 1, 5) },
      .arg = { 1, 0, 3, 2 } },
    { "transpose, negative axes", build_transpose, "g", .shape = { SHAPE(3, 129, 131) },
      .arg = { -1, -2 } },
    { "transpose, far axes", build_transpose, "g", .shape = { SHAPE(19, 3, 35) }, .arg = { 0, 2 } },
    { "transpose, i32", build_transpose, "l", .shape = { SHAPE(17, 33) }, .arg = { 0, 1 } },
    { "transpose, u8", build_transpose, "m", .shape = { SHAPE(33, 17) }, .arg = { 0, 1 } },
};
SAMPLES(permute)

BUILD(build_slice)
{
    return kiln_slice(leaf[0], (int)arg[0], arg[1], arg[2], arg[3]);
}

BUILD(build_select)
{
    return kiln_select(leaf[0], (int)arg[0], arg[1]);
}

BUILD(build_flip)
{
    return kiln_flip(leaf[0], (int)arg[0]);
}

static const Case cases_slice[] = {
    { "slice", build_slice, "g", .shape = { SHAPE(3, 5, 4) }, .arg = { 1, 1, 4, 1 } },
    { "slice, by step", build_slice, "g", .shape = { SHAPE(3, 7) },
      .arg = { -1, -6, KILN_END, 3 } },
    { "slice, first axis", build_slice, "g", .shape = { SHAPE(9, 5) }, .arg = { 0, 2, -1, 2 } },
    { "slice, large", build_slice, "g", .shape = { SHAPE(67, 1031) }, .arg = { 1, 3, 1030, 1 } },
    { "slice, i32", build_slice, "l", .shape = { SHAPE(7, 11) }, .arg = { 1, 2, 9, 2 } },
    { "slice, u8", build_slice, "m", .shape = { SHAPE(7, 11) }, .arg = { 0, 2, 5, 1 } },
    { "select", build_select, "g", .shape = { SHAPE(3, 5, 2) }, .arg = { 1, -2 } },
    { "flip", build_flip, "g", .shape = { SHAPE(3, 5) }, .arg = { -1 } },
    { "flip, large", build_flip, "g", .shape = { SHAPE(70001) }, .arg = { 0 } },
};
SAMPLES(slice)

BUILD(build_pad)
{
    const int64_t before[] = { arg[0], arg[1], arg[2] }, after[] = { arg[3], arg[4], arg[5] };

    return kiln_pad(leaf[0], before, after, -1.5);
}

BUILD(build_pad_labels)
{
    const int64_t before[] = { arg[0] }, after[] = { arg[1] };

    return kiln_pad(leaf[0], before, after, -100.0);
}

static const Case cases_pad[] = {
    { "pad", build_pad, "g", .shape = { SHAPE(2, 3, 4) }, .arg = { 0, 1, 2, 1, 0, 3 } },
    { "pad, large", build_pad, "g", .shape = { SHAPE(3, 101, 211) }, .arg = { 0, 1, 1, 0, 1, 1 } },
    { "pad, i32", build_pad_labels, "l", .shape = { SHAPE(7) }, .arg = { 2, 5 } },
    { "pad, u8", build_pad_labels, "m", .shape = { SHAPE(7) }, .arg = { 2, 0 } },
};
SAMPLES(pad)

BUILD(build_concat)
{
    return kiln_concat(leaf, 3, (int)arg[0]);
}

/* More than one node takes. */
BUILD(build_concat_many)
{
    KilnTensor *parts[19];

    for (int i = 0; i < 19; i++)
        parts[i] = leaf[i % 2];
    return kiln_concat(parts, 19, (int)arg[0]);
}

BUILD(build_stack)
{
    return kiln_stack(leaf, 2, (int)arg[0]);
}

BUILD(build_roll)
{
    return kiln_roll(leaf[0], (int)arg[0], arg[1]);
}

static const Case cases_concat[] = {
    { "concat", build_concat, "ggg", .shape = { SHAPE(2, 3), SHAPE(2, 1), SHAPE(2, 4) },
      .arg = { 1 } },
    { "concat, first axis", build_concat, "gfg", .shape = { SHAPE(2, 3), SHAPE(1, 3), SHAPE(4, 3) },
      .arg = { 0 } },
    { "concat, large", build_concat, "ggg",
      .shape = { SHAPE(31, 37, 64), SHAPE(31, 37, 7), SHAPE(31, 37, 33) }, .arg = { -1 } },
    { "concat, u8", build_concat, "mmm", .shape = { SHAPE(2, 3), SHAPE(2, 1), SHAPE(2, 4) },
      .arg = { 1 } },
    { "concat, 19 tensors", build_concat_many, "gg", .shape = { SHAPE(2, 3), SHAPE(2, 1) },
      .arg = { 1 } },
    { "stack", build_stack, "gg", .shape = { SHAPE(2, 3), SHAPE(2, 3) }, .arg = { 1 } },
    { "stack, last", build_stack, "ll", .shape = { SHAPE(5), SHAPE(5) }, .arg = { -1 } },
    { "roll", build_roll, "g", .shape = { SHAPE(2, 5) }, .arg = { 1, 7 } },
    { "roll, back", build_roll, "g", .shape = { SHAPE(5, 3) }, .arg = { 0, -2 } },
};
SAMPLES(concat)

/* Pieces that are used, and one that gets no gradient. */
BUILD(build_split)
{
    const int64_t sizes[] = { arg[1], arg[2], arg[3] };
    KilnTensor *pieces[3];

    kiln_split(leaf[0], (int)arg[0], sizes, 3, pieces);
    return kiln_concat((KilnTensor *[]) { pieces[2], pieces[0] }, 2, (int)arg[0]);
}

/* arg[1] pieces of size 1 and 2 in turn, joined backwards; the first is left out. */
BUILD(build_split_many)
{
    int64_t sizes[64];
    KilnTensor *pieces[64], *back[64];
    const int n = (int)arg[1];

    for (int i = 0; i < n; i++)
        sizes[i] = 1 + i % 2;
    kiln_split(leaf[0], (int)arg[0], sizes, n, pieces);
    for (int i = 0; i + 1 < n; i++)
        back[i] = pieces[n - 1 - i];
    return kiln_concat(back, n - 1, (int)arg[0]);
}

static const Case cases_split[] = {
    { "split, nine pieces", build_split_many, "g", .shape = { SHAPE(3, 13) }, .arg = { 1, 9 } },
    { "split, many pieces", build_split_many, "g", .shape = { SHAPE(75, 3) }, .arg = { 0, 50 } },
    { "split", build_split, "g", .shape = { SHAPE(2, 6) }, .arg = { 1, 1, 2, 3 } },
    { "split, large", build_split, "g", .shape = { SHAPE(67, 5, 96) }, .arg = { -1, 32, 32, 32 } },
    { "split, i32", build_split, "l", .shape = { SHAPE(7, 3) }, .arg = { 0, 2, 2, 3 } },
};
SAMPLES(split)

BUILD(build_triangle)
{
    return arg[1] != 0 ? kiln_triu(leaf[0], arg[0], 0.25) : kiln_tril(leaf[0], arg[0], 0.25);
}

static const Case cases_triangle[] = {
    { "tril", build_triangle, "g", .shape = { SHAPE(2, 4, 5) }, .arg = { 0, 0 } },
    { "tril, above", build_triangle, "g", .shape = { SHAPE(5, 4) }, .arg = { 2, 0 } },
    { "tril, all gone", build_triangle, "g", .shape = { SHAPE(3, 4) }, .arg = { -7, 0 } },
    { "triu", build_triangle, "g", .shape = { SHAPE(2, 4, 5) }, .arg = { 1, 1 } },
    { "triu, below", build_triangle, "g", .shape = { SHAPE(5, 3) }, .arg = { -2, 1 } },
    { "tril, large", build_triangle, "g", .shape = { SHAPE(6, 131, 137) }, .arg = { 0, 0 } },
};
SAMPLES(triangle)
