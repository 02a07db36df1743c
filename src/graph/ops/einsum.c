/* Einstein summation: the equation is read when it is recorded, and becomes sums, transposes and
 * products. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "graph/graph.h"

/* A tensor whose axes are named by letters, none twice. */
typedef struct Named {
    KilnTensor *x;
    char axes[KILN_MAX_RANK + 1];
} Named;

/* ---- Reading -------------------------------------------------------------------------- */

/* Reads letters up to one of `,-` and the end; returns where it stopped, or NULL for anything else,
 * or too many letters. */
static const char *read_axes(const char *at, char ret[KILN_MAX_RANK + 1])
{
    size_t n = 0;

    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        if (*at == ' ')
            continue;
        if (!isalpha((unsigned char)*at) || n == KILN_MAX_RANK)
            return NULL;
        ret[n++] = *at;
    }
    ret[n] = '\0';
    return at;
}

/* Without an arrow: the letters that are there once, in the order of the alphabet. */
static bool implied_output(const char *equation, char ret[KILN_MAX_RANK + 1])
{
    size_t n = 0;

    for (int letter = 'A'; letter <= 'z'; letter++) {
        const char *first = isalpha(letter) ? strchr(equation, letter) : NULL;

        if (first == NULL || strchr(first + 1, letter) != NULL)
            continue;
        if (n == KILN_MAX_RANK)
            return false;
        ret[n++] = (char)letter;
    }
    ret[n] = '\0';
    return true;
}

static bool read_output(const char *equation, char ret[KILN_MAX_RANK + 1])
{
    const char *arrow = strstr(equation, "->"), *end;

    if (arrow == NULL)
        return implied_output(equation, ret);
    end = read_axes(arrow + 2, ret);
    if (end == NULL || *end != '\0')
        return false;
    for (const char *c = ret; *c != '\0'; c++) {
        const char *first = strchr(equation, *c);

        if (strchr(c + 1, *c) != NULL || first == NULL || first > arrow)
            return false;
    }
    return true;
}

/* ---- Single operands --------------------------------------------------------------------- */

static int axis_of(const Named *a, char letter)
{
    return (int)(strchr(a->axes, letter) - a->axes);
}

static void remove_axis(Named *a, int axis)
{
    memmove(a->axes + axis, a->axes + axis + 1, strlen(a->axes) - (size_t)axis);
}

/* The diagonal of two axes takes the place of the last one: every n + 1st element of n × n. */
static void take_diagonal(Named *a, int first, int second)
{
    const int rank = (int)strlen(a->axes);
    const int64_t n = kiln_tensor_dim(a->x, second);
    const char letter = a->axes[first];
    KilnShape shape = { .rank = rank - 1 };
    int order[KILN_MAX_RANK], k = 0;

    for (int axis = 0; axis < rank; axis++)
        if (axis != first && axis != second) {
            shape.dim[k] = kiln_tensor_dim(a->x, axis);
            order[k++] = axis;
        }
    order[k] = first;
    order[k + 1] = second;
    shape.dim[k] = n * n;
    a->x = kiln_slice(kiln_reshape(kiln_permute(a->x, order), shape), k, 0, KILN_END, n + 1);
    remove_axis(a, second);
    remove_axis(a, first);
    a->axes[rank - 2] = letter;
    a->axes[rank - 1] = '\0';
}

static void take_diagonals(Named *a)
{
    for (int i = 0; a->axes[i] != '\0' && !a->x->poisoned; i++) {
        const char *again = strchr(a->axes + i + 1, a->axes[i]);

        if (again != NULL) {
            take_diagonal(a, i, (int)(again - a->axes));
            i = -1;
        }
    }
}

/* Sums over the axes that are in neither list. */
static void sum_others(Named *a, const char *kept, const char *more)
{
    int axes[KILN_MAX_RANK], n = 0;
    char left[KILN_MAX_RANK + 1];
    size_t n_left = 0;

    for (int i = 0; a->axes[i] != '\0'; i++) {
        if (strchr(kept, a->axes[i]) == NULL && strchr(more, a->axes[i]) == NULL)
            axes[n++] = i;
        else
            left[n_left++] = a->axes[i];
    }
    left[n_left] = '\0';
    if (n > 0)
        a->x = kiln_sum_axes(a->x, axes, n, false);
    memcpy(a->axes, left, n_left + 1);
}

static KilnTensor *permuted(const Named *a, const char *axes)
{
    int order[KILN_MAX_RANK];
    bool same = true;

    for (int i = 0; axes[i] != '\0'; i++) {
        order[i] = axis_of(a, axes[i]);
        same = same && order[i] == i;
    }
    return same ? a->x : kiln_permute(a->x, order);
}

/* ---- Products of two ------------------------------------------------------------------------ */

/* Letters of two operands by what a product does with them. */
typedef struct Parts {
    char batch[KILN_MAX_RANK + 1], sum[KILN_MAX_RANK + 1];
    char left[KILN_MAX_RANK + 1], right[KILN_MAX_RANK + 1];
} Parts;

static void append(char *letters, char letter)
{
    const size_t n = strlen(letters);

    letters[n] = letter;
    letters[n + 1] = '\0';
}

static Parts parts_of(const Named *a, const Named *b, const char *needed)
{
    Parts parts = { .batch = "" };

    for (const char *c = a->axes; *c != '\0'; c++) {
        const bool both = strchr(b->axes, *c) != NULL;

        append(!both ? parts.left : strchr(needed, *c) != NULL ? parts.batch : parts.sum, *c);
    }
    for (const char *c = b->axes; *c != '\0'; c++)
        if (strchr(a->axes, *c) == NULL)
            append(parts.right, *c);
    return parts;
}

static int64_t count_of(const Named *a, const char *axes)
{
    int64_t n = 1;

    for (; *axes != '\0'; axes++)
        n *= kiln_tensor_dim(a->x, axis_of(a, *axes));
    return n;
}

/* As [batch, rows, columns]. */
static KilnTensor *as_matrices(const Named *a, const char *batch, const char *rows,
                               const char *columns)
{
    char axes[3 * KILN_MAX_RANK + 1] = "";

    strncat(axes, batch, KILN_MAX_RANK);
    strncat(axes, rows, KILN_MAX_RANK);
    strncat(axes, columns, KILN_MAX_RANK);
    return kiln_reshape(permuted(a, axes),
                        KILN_SHAPE(count_of(a, batch), count_of(a, rows), count_of(a, columns)));
}

/* a · b with the axes batch, left, right; the others are summed. */
static Named multiply(Named *a, Named *b, const char *needed)
{
    Named y = { .x = a->x->graph->poison };

    sum_others(a, b->axes, needed);
    sum_others(b, a->axes, needed);
    const Parts parts = parts_of(a, b, needed);
    const char *const lists[] = { parts.batch, parts.left, parts.right };
    KilnShape shape = { .rank = 0 };

    for (int i = 0; i < 3; i++)
        for (const char *c = lists[i]; *c != '\0'; c++) {
            const Named *from = i < 2 ? a : b;

            if (shape.rank == KILN_MAX_RANK) {
                kiln_graph_poison(a->x->graph, "einsum: a product has more than %d axes",
                                  KILN_MAX_RANK);
                return y;
            }
            shape.dim[shape.rank++] = kiln_tensor_dim(from->x, axis_of(from, *c));
            append(y.axes, *c);
        }
    KilnTensor *left = as_matrices(a, parts.batch, parts.left, parts.sum);
    KilnTensor *right = as_matrices(b, parts.batch, parts.sum, parts.right);

    y.x = kiln_reshape(parts.sum[0] != '\0' ? kiln_matmul(left, right, false, false)
                                            : kiln_mul(left, right),
                       shape);
    return y;
}

/* ---- The equation
 * -------------------------------------------------------------------------------- */

/* False, with the graph poisoned, where a letter has two sizes. */
static bool check_sizes(const Named *a, int64_t sizes[128])
{
    for (int i = 0; a->axes[i] != '\0'; i++) {
        int64_t *size = &sizes[(unsigned char)a->axes[i] & 127];
        const int64_t dim = kiln_tensor_dim(a->x, i);

        if (*size != 0 && *size != dim) {
            kiln_graph_poison(a->x->graph, "einsum: %c is %" PRId64 " and %" PRId64, a->axes[i],
                              *size, dim);
            return false;
        }
        *size = dim;
    }
    return true;
}

/* The next operand; false, with the graph poisoned, if it does not fit the equation. *at is moved
 * to the one after it. */
static bool next_operand(const char **at, KilnTensor *x, Named *ret, int64_t sizes[128])
{
    const char *from = *at, *end = read_axes(from, ret->axes);
    char text[KILN_SHAPE_TEXT];

    ret->x = x;
    if (x->poisoned)
        return false;
    if (end == NULL || (int)strlen(ret->axes) != x->shape.rank) {
        kiln_graph_poison(x->graph, "einsum: letters and axes differ at \"%s\", for %s", from,
                          kiln_shape_text(&x->shape, text, sizeof(text)));
        return false;
    }
    if (!check_sizes(ret, sizes))
        return false;
    take_diagonals(ret);
    *at = *end == ',' ? end + 1 : end;
    return !ret->x->poisoned;
}

static bool valid_equation(const char *equation, int n, char ret_output[KILN_MAX_RANK + 1])
{
    int operands = 1;

    for (const char *c = equation; *c != '\0'; c++)
        operands += *c == ',';
    return operands == n && read_output(equation, ret_output);
}

/* The letters of the output and of what follows, each once. */
static void letters_of(const char *output, const char *rest, char ret[64])
{
    const char *const lists[] = { output, rest };
    size_t n = 0;

    ret[0] = '\0';
    for (int i = 0; i < 2; i++)
        for (const char *c = lists[i]; *c != '\0'; c++)
            if (isalpha((unsigned char)*c) && strchr(ret, *c) == NULL) {
                ret[n++] = *c;
                ret[n] = '\0';
            }
}

KilnTensor *kiln_einsum(const char *equation, KilnTensor *const *operands, int n)
{
    KilnGraph *graph = operands[0]->graph;
    int64_t sizes[128] = { 0 };
    char output[KILN_MAX_RANK + 1], needed[64];
    const char *at = equation;
    Named y, next;

    if (!valid_equation(equation, n, output))
        return kiln_graph_poison(graph,
                                 "einsum: \"%s\" is no equation for %d operands; expected letters "
                                 "as in \"ij,jk->ik\"",
                                 equation, n);
    if (!next_operand(&at, operands[0], &y, sizes))
        return graph->poison;
    for (int i = 1; i < n; i++) {
        if (!next_operand(&at, operands[i], &next, sizes))
            return graph->poison;
        letters_of(output, at, needed);
        y = multiply(&y, &next, needed);
        if (y.x->poisoned)
            return graph->poison;
    }
    sum_others(&y, output, "");
    return permuted(&y, output);
}
