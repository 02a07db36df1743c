/* Recorded by tests/record/error_rates.py; do not edit. */
/* clang-format off */
static const char *const rate_corpus_texts[] = { "mat; €b 3.5z the nav", "€2 qthe yä, qCat", "naïve o 你好 3x5% at (big)", "the on你好 a", "你好 sät, Cat", "(big) (big) naïve", "sät the te", "o qsät sät,", "on .5% €2 €2 qon säqt,", "你好q azhe mat;", "sät, sqät, Catqmat qa (bi)", "(big)", "Cat qmat;a naqveümt;", "naïve naïve ät,", "a", "mat;", "the .5a 好 ma; 你好 (qbigq) th", "yhe yätq, (big oqn Cat on naqïve maü", "mat; 3z%aq naüve Cat (big) mat a ae", "at n matb .5%q (big)mat; säü," };
static const char *const rate_corpus_references[] = { "mat; €2 3.5% the naïve", "€2 the sät, Cat", "naïve on 你好 3.5% Cat (big)", "the on 你好 a", "你好 sät, Cat", "(big) (big) naïve", "sät, the the", "on sät, sät, a", "on 3.5% €2 €2 on sät,", "你好 a the mat;", "sät, sät, a Cat mat; a (big)", "(big)", "Cat a mat; a naïve mat;", "naïve naïve sät,", "a", "mat;", "the 3.5% 你好 mat; 你好 (big) the", "the sät, (big) on Cat on naïve mat;", "mat; 3.5% a naïve Cat (big) mat; a the", "Cat on mat; 3.5% (big) mat; sät," };
static const char *const rate_same_texts[] = { "mat; €2 3.5% the naïve", "€2 the sät, Cat", "naïve on 你好 3.5% Cat (big)", "the on 你好 a", "你好 sät, Cat", "(big) (big) naïve", "sät, the the", "on sät, sät, a", "on 3.5% €2 €2 on sät,", "你好 a the mat;", "sät, sät, a Cat mat; a (big)", "(big)", "Cat a mat; a naïve mat;", "naïve naïve sät,", "a", "mat;", "the 3.5% 你好 mat; 你好 (big) the", "the sät, (big) on Cat on naïve mat;", "mat; 3.5% a naïve Cat (big) mat; a the", "Cat on mat; 3.5% (big) mat; sät," };
static const char *const rate_same_references[] = { "mat; €2 3.5% the naïve", "€2 the sät, Cat", "naïve on 你好 3.5% Cat (big)", "the on 你好 a", "你好 sät, Cat", "(big) (big) naïve", "sät, the the", "on sät, sät, a", "on 3.5% €2 €2 on sät,", "你好 a the mat;", "sät, sät, a Cat mat; a (big)", "(big)", "Cat a mat; a naïve mat;", "naïve naïve sät,", "a", "mat;", "the 3.5% 你好 mat; 你好 (big) the", "the sät, (big) on Cat on naïve mat;", "mat; 3.5% a naïve Cat (big) mat; a the", "Cat on mat; 3.5% (big) mat; sät," };
static const char *const rate_empty_texts[] = { "", "a b" };
static const char *const rate_empty_references[] = { "one two", "a b" };
static const char *const rate_longer_texts[] = { "a b c d e f g" };
static const char *const rate_longer_references[] = { "a" };
static const char *const rate_spaces_texts[] = { "a  b c" };
static const char *const rate_spaces_references[] = { "a b c" };
static const ErrorRates error_rates[] = {
    { { "corpus", rate_corpus_texts, rate_corpus_references, 20, 1 }, 0.18498659517426275, 0.61956521739130432 },
    { { "same", rate_same_texts, rate_same_references, 20, 1 }, 0, 0 },
    { { "empty", rate_empty_texts, rate_empty_references, 2, 1 }, 0.69999999999999996, 0.5 },
    { { "longer", rate_longer_texts, rate_longer_references, 1, 1 }, 12, 6 },
    { { "spaces", rate_spaces_texts, rate_spaces_references, 1, 1 }, 0.40000000000000002, 0 },
};
/* clang-format on */
