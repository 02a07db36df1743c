/* The bookkeeping of beam search: beams, candidates and finished hypotheses of the samples of a
 * batch. It knows log-probabilities, but not how they are computed. */
#ifndef KILN_TRAIN_STEP_BEAMS_H
#define KILN_TRAIN_STEP_BEAMS_H

#include "kiln/tools/beam_search.h"

/* A beam extended by a token. */
typedef struct KilnBeamCandidate {
    double log_prob;
    int32_t beam, token;
} KilnBeamCandidate;

/* The search of one sample. */
typedef struct KilnBeamSample {
    double *log_probs;    /* [beams]; -INFINITY: unused */
    KilnHypothesis *best; /* [beams], sorted; the finished ones */
    int64_t n_finished, limit;
    bool done;
} KilnBeamSample;

typedef struct KilnBeams {
    const KilnBeamSearch *search;
    int64_t n, length; /* samples; tokens of each beam */
    KilnBeamSample *samples;
    double *log_probs;             /* of all samples */
    KilnHypothesis *best;          /* of all samples */
    int32_t *tokens, *old;         /* [n * beams, max_length]; of the step before */
    int32_t *last;                 /* [n * beams] the newest tokens, for the next step */
    int32_t *parents;              /* [n * beams] the row that each row continues */
    KilnBeamCandidate *candidates; /* [2 * beams], of one sample */
} KilnBeams;

/* Each sample has one empty beam. KILN_E_NOMEM. */
KILN_NODISCARD KilnStatus kiln_beams_init(KilnBeams *beams, const KilnBeamSearch *search, int64_t n,
                                          KilnError *err);
/* Accepts a zeroed struct. */
void kiln_beams_release(KilnBeams *beams);
/* Extend all beams by log-probabilities [n * beams, n_ids], and set `last` and `parents`. */
KILN_NODISCARD KilnStatus kiln_beams_extend(KilnBeams *beams, const float *log_probs,
                                            KilnError *err);
/* Whether all samples are done. */
bool kiln_beams_done(const KilnBeams *beams);
/* Move the best n_best of each sample to *ret, owned by the caller. */
KILN_NODISCARD KilnStatus kiln_beams_take(KilnBeams *beams, KilnHypothesis **ret, KilnError *err);

#endif
