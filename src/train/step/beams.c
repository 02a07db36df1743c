/* Beams, candidates and finished hypotheses. */
#include "train/step/beams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

KilnStatus kiln_beams_init(KilnBeams *beams, const KilnBeamSearch *search, int64_t n,
                           KilnError *err)
{
    const size_t width = (size_t)search->beams, rows = (size_t)n * width;
    const size_t room = rows * (size_t)search->max_length;

    *beams = (KilnBeams) {
        .search = search,
        .n = n,
        .samples = calloc((size_t)n, sizeof(*beams->samples)),
        .log_probs = malloc(rows * sizeof(*beams->log_probs)),
        .best = calloc(rows, sizeof(*beams->best)),
        .tokens = malloc(room * sizeof(*beams->tokens)),
        .old = malloc(room * sizeof(*beams->old)),
        .last = malloc(rows * sizeof(*beams->last)),
        .parents = malloc(rows * sizeof(*beams->parents)),
        .candidates = malloc(2 * width * sizeof(*beams->candidates)),
    };
    if (beams->samples == NULL || beams->log_probs == NULL || beams->best == NULL ||
        beams->tokens == NULL || beams->old == NULL || beams->last == NULL ||
        beams->parents == NULL || beams->candidates == NULL)
        return kiln_error_nomem(err, room * sizeof(*beams->tokens));
    for (size_t r = 0; r < rows; r++) {
        beams->log_probs[r] = r % width == 0 ? 0.0 : (double)-INFINITY;
        beams->last[r] = search->begin;
        beams->parents[r] = (int32_t)r;
    }
    for (int64_t s = 0; s < n; s++) {
        int64_t limit = search->max_length;

        if (search->limits != NULL && search->limits[s] < limit)
            limit = search->limits[s];
        beams->samples[s] = (KilnBeamSample) { .log_probs = beams->log_probs + s * search->beams,
                                               .best = beams->best + s * search->beams,
                                               .limit = limit };
    }
    return KILN_OK;
}

void kiln_beams_release(KilnBeams *beams)
{
    if (beams->search != NULL)
        kiln_hypotheses_free(beams->best, beams->n * beams->search->beams);
    free(beams->samples);
    free(beams->log_probs);
    free(beams->tokens);
    free(beams->old);
    free(beams->last);
    free(beams->parents);
    free(beams->candidates);
}

void kiln_hypotheses_free(KilnHypothesis *list, int64_t n)
{
    for (int64_t i = 0; list != NULL && i < n; i++)
        free(list[i].ids);
    free(list);
}

/* ---- Candidates ---------------------------------------------------------------------------- */

/* Insert a candidate into the sorted list of at most `most`; of equal ones the first stays first.
 */
static void insert(KilnBeamCandidate *list, size_t *n, size_t most, KilnBeamCandidate candidate)
{
    size_t at = *n < most ? (*n)++ : most - 1;

    for (; at > 0 && list[at - 1].log_prob < candidate.log_prob; at--)
        list[at] = list[at - 1];
    list[at] = candidate;
}

/* The 2 * beams best candidates of a sample: as many as it takes, since at most `beams` of them
 * end. Returns their number. */
static size_t find_candidates(KilnBeams *beams, const KilnBeamSample *sample,
                              const float *log_probs)
{
    const int64_t n_ids = beams->search->n_ids;
    const size_t most = 2 * (size_t)beams->search->beams;
    KilnBeamCandidate *list = beams->candidates;
    size_t n = 0;

    for (int32_t beam = 0; beam < (int32_t)beams->search->beams; beam++) {
        const float *row = log_probs + beam * n_ids;
        const double before = sample->log_probs[beam];

        if (isinf(before))
            continue;
        double least = n < most ? (double)-INFINITY : list[n - 1].log_prob;
        for (int32_t token = 0; token < (int32_t)n_ids; token++) {
            const double log_prob = before + (double)row[token];

            if (!(log_prob > least))
                continue;
            insert(list, &n, most, (KilnBeamCandidate) { log_prob, beam, token });
            least = n < most ? (double)-INFINITY : list[n - 1].log_prob;
        }
    }
    return n;
}

/* ---- Finished hypotheses --------------------------------------------------------------------- */

static double score_of(const KilnBeams *beams, double log_prob, int64_t length)
{
    return log_prob / pow((double)length, beams->search->length_penalty);
}

/* Add a candidate's sequence to the finished ones if it is among the best. */
static KilnStatus finish(KilnBeams *beams, KilnBeamSample *sample,
                         const KilnBeamCandidate *candidate, const int32_t *tokens, KilnError *err)
{
    const bool ends = candidate->token == beams->search->end;
    const int64_t n = beams->length + (ends ? 0 : 1);
    const double score = score_of(beams, candidate->log_prob, beams->length + 1);
    int64_t at = sample->n_finished;

    if (at == beams->search->beams && sample->best[at - 1].score >= score)
        return KILN_OK;
    int32_t *ids = malloc((size_t)(n + 1) * sizeof(*ids));
    if (ids == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*ids));
    memcpy(ids, tokens, (size_t)beams->length * sizeof(*ids));
    if (!ends)
        ids[n - 1] = candidate->token;
    if (at == beams->search->beams)
        free(sample->best[--at].ids);
    else
        sample->n_finished++;
    for (; at > 0 && sample->best[at - 1].score < score; at--)
        sample->best[at] = sample->best[at - 1];
    sample->best[at] = (KilnHypothesis) { .ids = ids, .n = n, .score = score };
    return KILN_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------
 */

/* Continue beam `to` of sample s with a candidate. */
static void keep(KilnBeams *beams, int64_t s, int64_t to, const KilnBeamCandidate *candidate)
{
    const int64_t width = beams->search->beams, most = beams->search->max_length;
    const int64_t row = s * width + to, from = s * width + candidate->beam;
    int32_t *tokens = beams->tokens + row * most;

    memcpy(tokens, beams->old + from * most, (size_t)beams->length * sizeof(*tokens));
    tokens[beams->length] = candidate->token;
    beams->last[row] = candidate->token;
    beams->parents[row] = (int32_t)from;
}

/* A sample is done when its best beam, at its present length, can't replace a finished sequence. */
static bool is_done(const KilnBeams *beams, const KilnBeamSample *sample)
{
    return beams->length >= sample->limit ||
           (sample->n_finished == beams->search->beams &&
            score_of(beams, sample->log_probs[0], beams->length) <=
                sample->best[sample->n_finished - 1].score);
}

static KilnStatus extend(KilnBeams *beams, int64_t s, const float *log_probs, KilnError *err)
{
    const int64_t width = beams->search->beams, most = beams->search->max_length;
    KilnBeamSample *sample = &beams->samples[s];
    const bool last = beams->length + 1 >= sample->limit;
    const size_t n = find_candidates(beams, sample, log_probs);
    KilnStatus status = KILN_OK;
    int64_t kept = 0;

    for (size_t i = 0; i < n && status >= 0; i++) {
        const KilnBeamCandidate *candidate = &beams->candidates[i];
        const bool ends = candidate->token == beams->search->end || last;

        if (ends && (int64_t)i < width)
            status = finish(beams, sample, candidate,
                            beams->old + (s * width + candidate->beam) * most, err);
        else if (!ends && kept < width)
            keep(beams, s, kept++, candidate);
    }
    for (int64_t i = 0, c = 0; i < kept; c++)
        if (beams->candidates[c].token != beams->search->end)
            sample->log_probs[i++] = beams->candidates[c].log_prob;
    for (int64_t i = kept; i < width; i++)
        sample->log_probs[i] = (double)-INFINITY;
    return status;
}

KilnStatus kiln_beams_extend(KilnBeams *beams, const float *log_probs, KilnError *err)
{
    const int64_t width = beams->search->beams;
    int32_t *tokens = beams->tokens;
    KilnStatus status = KILN_OK;

    beams->tokens = beams->old;
    beams->old = tokens;
    for (int64_t r = 0; r < beams->n * width; r++)
        beams->parents[r] = (int32_t)r;
    for (int64_t s = 0; s < beams->n && status >= 0; s++)
        if (!beams->samples[s].done)
            status = extend(beams, s, log_probs + s * width * beams->search->n_ids, err);
    beams->length++;
    for (int64_t s = 0; s < beams->n; s++)
        beams->samples[s].done = beams->samples[s].done || is_done(beams, &beams->samples[s]);
    return status;
}

bool kiln_beams_done(const KilnBeams *beams)
{
    for (int64_t s = 0; s < beams->n; s++)
        if (!beams->samples[s].done)
            return false;
    return true;
}

KilnStatus kiln_beams_take(KilnBeams *beams, KilnHypothesis **ret, KilnError *err)
{
    const int64_t n_best = beams->search->n_best;
    const size_t bytes = (size_t)(beams->n * n_best) * sizeof(KilnHypothesis);
    KilnHypothesis *list = calloc(1, bytes + 1);

    if (list == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t s = 0; s < beams->n; s++)
        for (int64_t i = 0; i < n_best && i < beams->samples[s].n_finished; i++) {
            list[s * n_best + i] = beams->samples[s].best[i];
            beams->samples[s].best[i].ids = NULL;
        }
    *ret = list;
    return KILN_OK;
}
