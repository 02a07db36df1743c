/* Generating text with a language model: a module with generate_step, and a datamodule with a
 * tokenizer. Each step computes one token of every prompt from caches of keys and values
 * (kiln_step_cache); one plan serves all steps. */
#ifndef KILN_KILN_TOOLS_GENERATE_H
#define KILN_KILN_TOOLS_GENERATE_H

#include "kiln/tokenizer.h"
#include "kiln/trainer.h"

/* How tokens are chosen. The defaults are those of a zeroed struct. */
typedef struct KilnTokenChoice {
    double temperature; /* logits are divided by it; 0: the token with the largest logit (greedy),
                         * of equal ones the first */
    int64_t top_k;      /* only the k tokens with the largest logits; 0: all */
    double top_p;       /* only the fewest tokens whose probabilities add up to p (Holtzman et al.,
                         * "The curious case of neural text degeneration", 2020); 0: all */
    /* Logits of tokens that occurred, also in the prompt, are divided by it if positive, else
     * multiplied (Keskar et al., "CTRL", 2019); 0: 1. */
    double repetition_penalty;
    uint64_t seed; /* of the random numbers of prompt 0; prompt i has the stream (seed, i) */
} KilnTokenChoice;

typedef struct KilnGenerateOptions {
    KilnTokenChoice choice;
    int64_t max_tokens;      /* of each prompt, the prompt's not counted; 0: 256 */
    const char *const *stop; /* generated texts end before any of these; NULL-terminated or NULL */
    /* Receives the text of prompt number `prompt` as it is generated, complete characters. May be
     * NULL. */
    void (*text)(void *ctx, size_t prompt, KilnString text);
    void *ctx;
    const volatile int *interrupt; /* not 0: end after the current token. May be NULL */
} KilnGenerateOptions;

/* Why a text ended. */
typedef enum KilnGenerateEnd {
    KILN_GENERATE_MAX_TOKENS,
    KILN_GENERATE_END_TOKEN, /* the tokenizer's end of a text */
    KILN_GENERATE_STOP,      /* a stop string */
    KILN_GENERATE_INTERRUPTED
} KilnGenerateEnd;

typedef struct KilnGeneratedText {
    KilnString text; /* generated, without the prompt; NUL follows */
    const int32_t *tokens;
    size_t n_tokens;
    KilnGenerateEnd end;
} KilnGeneratedText;

typedef struct KilnGenerated {
    const KilnGeneratedText *list; /* one per prompt, in their order */
    size_t n;
} KilnGenerated;

/* Accepts NULL. */
KILN_API void kiln_generated_free(KilnGenerated *generated);

/* The next token from its logits [n], as `choice` says. `seen` are the n_seen tokens before it,
 * those of the prompt first; `prompt` is its number. `work` has room for n floats and n ids. */
KILN_API int32_t kiln_token_choose(const KilnTokenChoice *choice, const float *logits, int64_t n,
                                   const int32_t *seen, size_t n_seen, uint32_t prompt, float *work,
                                   int32_t *ids);

/* Generate from `n` prompts with the run's current weights, for callbacks. A prompt that is empty
 * begins with the tokenizer's token for that. A text that outgrows the model's context goes on with
 * the last half of it. KILN_E_RANGE for a prompt that is longer than the context, KILN_E_MISSING if
 * task or datamodule can't generate. *ret is owned by the caller (kiln_generated_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_generate(KilnTrainer *trainer,
                                                         const char *const *prompts, size_t n,
                                                         const KilnGenerateOptions *options,
                                                         KilnGenerated **ret, KilnError *err);

#endif
