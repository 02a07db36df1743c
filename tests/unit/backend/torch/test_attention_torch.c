/* Attention and rotary positions of both backends against values and gradients recorded from
 * PyTorch (tests/record/attention.py). */
#include "tests/support/cmocka.h"
#include "tests/support/torch_groups.h"

#include "tests/data/ops/attention.h"

/* ---- The operations ----------------------------------------------------------------- */

#define ATTENTION(name, ...)                                                                       \
    RETURNS(name, kiln_attention(x[0], x[1], x[2], (KilnAttention) { __VA_ARGS__ }))

ATTENTION(plain, .causal = false)
ATTENTION(causal, .causal = true)
ATTENTION(causal_fewer_keys, .causal = true)
ATTENTION(scaled, .scale = 0.3)
ATTENTION(mask, .mask = x[3])
ATTENTION(mask_added, .mask = x[3])
ATTENTION(mask_gradient, .mask = x[3])
ATTENTION(mask_gradient_of_keys, .mask = x[3])
ATTENTION(padding, .padding = x[3])
/* The mask of the recording is the causal one. */
ATTENTION(padding_causal, .causal = true, .padding = x[4])
ATTENTION(padding_mask, .mask = x[3], .padding = x[4])
ATTENTION(grouped, .causal = false)
ATTENTION(grouped_causal, .causal = true)
RETURNS(documents,
        kiln_attention_within(x[0], x[1], x[2], x[3], (KilnAttention) { .causal = true }))
RETURNS(documents_packed,
        kiln_attention_packed_within(x[0], x[1], (KilnAttention) { .causal = true }))
RETURNS(rotary, kiln_rotary(x[0], (KilnRotary) { 0 }))
RETURNS(rotary_later, kiln_rotary(x[0], (KilnRotary) { .base = 500.0, .first = 40 }))
RETURNS(rotary_interleaved, kiln_rotary(x[0], (KilnRotary) { .interleaved = true }))
RETURNS(rotary_interleaved_later,
        kiln_rotary(x[0], (KilnRotary) { .base = 500.0, .first = 40, .interleaved = true }))

#define HEADS(queries, keys, heads, key_heads)                                                     \
    F("q", 2, queries, heads, 4), F("k", 2, keys, key_heads, 4), F("v", 2, keys, key_heads, 4)

static const Group groups[] = {
    GROUP(plain, HEADS(5, 7, 2, 2)),
    GROUP(causal, HEADS(5, 5, 2, 2)),
    GROUP(causal_fewer_keys, HEADS(7, 4, 2, 2)),
    GROUP(scaled, HEADS(5, 5, 2, 2)),
    GROUP(mask, HEADS(5, 5, 2, 2), U("mask", 2, 2, 5, 5)),
    GROUP(mask_added, HEADS(5, 5, 2, 2), F("mask", 5, 5)),
    GROUP(mask_gradient, HEADS(5, 5, 2, 2), F("mask", 2, 5, 5)),
    GROUP(mask_gradient_of_keys, HEADS(5, 7, 2, 2), F("mask", 2, 1, 1, 7)),
    GROUP(padding, HEADS(5, 5, 2, 2), U("padding", 2, 5)),
    GROUP(padding_causal, HEADS(5, 5, 2, 2), U("mask", 5, 5), U("padding", 2, 5)),
    GROUP(padding_mask, HEADS(5, 5, 2, 2), U("mask", 2, 2, 5, 5), U("padding", 2, 5)),
    GROUP(grouped, HEADS(5, 5, 6, 2)),
    GROUP(grouped_causal, HEADS(5, 5, 4, 1)),
    GROUP(documents, HEADS(9, 9, 4, 2), I("positions", 2, 9)),
    GROUP(documents_packed, F("qkv", 2, 9, 3, 2, 4), I("positions", 2, 9)),
    GROUP(rotary, F("x", 2, 5, 3, 8)),
    GROUP(rotary_later, F("x", 1, 3, 2, 4)),
    GROUP(rotary_interleaved, F("x", 2, 5, 3, 8)),
    GROUP(rotary_interleaved_later, F("x", 1, 3, 2, 4)),
};

int main(void)
{
    return test_recording((Recording) { groups, KILN_COUNT(groups), records, KILN_COUNT(records) });
}
