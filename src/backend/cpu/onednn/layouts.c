/* The oneDNN engine of a backend, and its layouts: interned descriptors, so that equal ones share a
 * number. */
#include "backend/cpu/onednn/layouts.h"

#include <stdlib.h>
#include <string.h>

typedef struct KilnMdEntry {
    KilnMdStore *md; /* allocated, so that its address is stable */
    KilnMdRole role;
} KilnMdEntry;

static KilnMd entry_md(const KilnMdEntry *entry)
{
    return kiln_md_get(entry->md);
}

size_t kiln_md_bytes(KilnMd md)
{
    return dnnl_memory_desc_get_size(md);
}

bool kiln_md_equal(KilnMd a, KilnMd b)
{
    return dnnl_memory_desc_equal(a, b) != 0;
}

/* ---- Interning -------------------------------------------------------------- */

static KilnStatus md_intern(KilnDnnl *dnnl, KilnMdRole role, KilnMd md, size_t *ret, KilnError *err)
{
    for (size_t i = 0; i < dnnl->count; i++)
        if (dnnl->entries[i].role == role && kiln_md_equal(entry_md(&dnnl->entries[i]), md)) {
            *ret = i;
            return KILN_OK;
        }
    if (dnnl->count == dnnl->capacity) {
        size_t capacity = dnnl->capacity > 0 ? 2 * dnnl->capacity : 64;
        KilnMdEntry *entries = realloc(dnnl->entries, capacity * sizeof(*entries));

        if (entries == NULL)
            return kiln_error_nomem(err, capacity * sizeof(*entries));
        dnnl->entries = entries;
        dnnl->capacity = capacity;
    }

    KilnMdStore *copy = malloc(sizeof(*copy));

    if (copy == NULL || kiln_md_copy(copy, md) != dnnl_success) {
        free(copy);
        return kiln_error_nomem(err, sizeof(*copy));
    }
    dnnl->entries[dnnl->count] = (KilnMdEntry) { .md = copy, .role = role };
    *ret = dnnl->count++;
    return KILN_OK;
}

static dnnl_format_tag_t tag_of(KilnMdRole role, int rank, KilnMdFormat format)
{
    switch (format) {
    case KILN_MD_ANY:
        return dnnl_format_tag_any;
    case KILN_MD_C16:
        return dnnl_nChw16c;
    case KILN_MD_C8:
        return dnnl_nChw8c;
    case KILN_MD_PLAIN:
        break;
    }
    switch (role) {
    case KILN_MD_WEIGHT:
        return rank == 5 ? dnnl_goihw : dnnl_oihw;
    case KILN_MD_VECTOR:
        return dnnl_a;
    case KILN_MD_IMAGE:
        break;
    }
    return dnnl_nhwc;
}

static KilnStatus md_tagged(KilnDnnl *dnnl, KilnMdRole role, const KilnMdFacts *facts,
                            KilnMdFormat format, KilnMd *ret, KilnError *err)
{
    KilnMdStore md;
    size_t entry = 0;
    dnnl_status_t status = kiln_md_init(&md, facts, tag_of(role, facts->rank, format));

    if (status != dnnl_success)
        return kiln_dnnl_error(err, status, "a memory descriptor");

    KilnStatus interned = md_intern(dnnl, role, kiln_md_get(&md), &entry, err);

    kiln_md_release(&md);
    if (interned == KILN_OK)
        *ret = entry_md(&dnnl->entries[entry]);
    return interned;
}

static dnnl_data_type_t dnnl_type(KilnDType dtype)
{
    switch (dtype) {
    case KILN_BF16:
        return dnnl_bf16;
    case KILN_I32:
        return dnnl_s32;
    case KILN_U8:
        return dnnl_u8;
    default:
        return dnnl_f32;
    }
}

/* oneDNN's logical dimensions: images are N, C, H, W in any memory order. */
static KilnMdFacts shape_facts(KilnMdRole role, KilnDType dtype, const KilnShape *shape)
{
    KilnMdFacts facts = { .rank = shape->rank, .type = dnnl_type(dtype) };
    const int64_t *dim = shape->dim;
    int64_t rows = 1;

    if (role == KILN_MD_WEIGHT || role == KILN_MD_VECTOR) {
        memcpy(facts.dims, dim, (size_t)shape->rank * sizeof(*dim));
        return facts;
    }
    facts.rank = 4;
    if (shape->rank == 4) {
        const dnnl_dims_t dims = { dim[0], dim[3], dim[1], dim[2] };

        memcpy(facts.dims, dims, sizeof(dims));
        return facts;
    }
    for (int axis = 0; axis + 1 < shape->rank; axis++)
        rows *= dim[axis];

    const dnnl_dims_t dims = { rows, shape->rank > 0 ? dim[shape->rank - 1] : 1, 1, 1 };

    memcpy(facts.dims, dims, sizeof(dims));
    return facts;
}

KilnStatus kiln_md_make(KilnDnnl *dnnl, KilnMdRole role, KilnDType dtype, const KilnShape *shape,
                        KilnMdFormat format, KilnMd *ret, KilnError *err)
{
    KilnMdFacts facts = shape_facts(role, dtype, shape);

    return md_tagged(dnnl, role, &facts, format, ret, err);
}

KilnStatus kiln_md_of(KilnDnnl *dnnl, KilnMdRole role, const KilnArg *arg, KilnMd *ret,
                      KilnError *err)
{
    if (arg->layout == KILN_PLAIN)
        return kiln_md_make(dnnl, role, arg->dtype, &arg->shape, KILN_MD_PLAIN, ret, err);
    *ret = entry_md(&dnnl->entries[arg->layout - 1]);
    return KILN_OK;
}

KilnStatus kiln_md_plain(KilnDnnl *dnnl, KilnMdRole role, KilnMd md, KilnMd *ret, KilnError *err)
{
    KilnMdFacts facts = kiln_md_facts(md);

    return md_tagged(dnnl, role, &facts, KILN_MD_PLAIN, ret, err);
}

KilnStatus kiln_md_plain_as(KilnDnnl *dnnl, KilnMdRole role, KilnDType dtype, KilnMd md,
                            KilnMd *ret, KilnError *err)
{
    KilnMdFacts facts = kiln_md_facts(md);

    facts.type = dnnl_type(dtype);
    return md_tagged(dnnl, role, &facts, KILN_MD_PLAIN, ret, err);
}

KilnStatus kiln_layout_of(KilnDnnl *dnnl, KilnMdRole role, KilnMd md, KilnLayout *ret,
                          KilnError *err)
{
    KilnMd plain = NULL;
    size_t entry = 0;
    KilnStatus status = kiln_md_plain(dnnl, role, md, &plain, err);

    if (status != KILN_OK)
        return status;
    if (kiln_md_equal(md, plain)) {
        *ret = KILN_PLAIN;
        return KILN_OK;
    }
    status = md_intern(dnnl, role, md, &entry, err);
    if (status == KILN_OK)
        *ret = (KilnLayout)(entry + 1);
    return status;
}

KilnMd kiln_layout_md(const KilnDnnl *dnnl, KilnLayout layout, KilnMdRole *ret_role)
{
    const KilnMdEntry *entry = &dnnl->entries[layout - 1];

    if (ret_role != NULL)
        *ret_role = entry->role;
    return entry_md(entry);
}

/* Whether this is an image's descriptor in that format. Allocates nothing that stays, so it cannot
 * run out of memory. */
static bool md_has_format(KilnMd md, const KilnMdFacts *facts, KilnMdFormat format)
{
    KilnMdStore image;

    if (kiln_md_init(&image, facts, tag_of(KILN_MD_IMAGE, facts->rank, format)) != dnnl_success)
        return false;
    const bool same = kiln_md_equal(md, kiln_md_get(&image));
    kiln_md_release(&image);
    return same;
}

KilnMdFormat kiln_layout_format(KilnDnnl *dnnl, KilnLayout layout, const KilnShape *shape)
{
    static const KilnMdFormat formats[] = { KILN_MD_PLAIN, KILN_MD_C16, KILN_MD_C8 };
    KilnMdFacts facts = shape_facts(KILN_MD_IMAGE, KILN_F32, shape);

    if (layout == KILN_PLAIN)
        return KILN_MD_PLAIN;

    KilnMd md = entry_md(&dnnl->entries[layout - 1]);

    facts.type = kiln_md_facts(md).type;
    for (size_t i = 0; i < KILN_COUNT(formats); i++)
        if (md_has_format(md, &facts, formats[i]))
            return formats[i];
    return KILN_MD_ANY;
}

int64_t kiln_layout_block(KilnDnnl *dnnl, KilnLayout layout, const KilnShape *shape)
{
    if (layout == KILN_PLAIN || shape->rank != 4)
        return 0;
    switch (kiln_layout_format(dnnl, layout, shape)) {
    case KILN_MD_C16:
        return 16;
    case KILN_MD_C8:
        return 8;
    case KILN_MD_ANY:
    case KILN_MD_PLAIN:
        break;
    }
    return 0;
}

KilnStatus kiln_layout_image(KilnDnnl *dnnl, KilnDType dtype, const KilnShape *shape,
                             KilnMdFormat format, KilnLayout *ret, KilnError *err)
{
    KilnMd md = NULL;
    KilnStatus status = kiln_md_make(dnnl, KILN_MD_IMAGE, dtype, shape, format, &md, err);

    return status == KILN_OK ? kiln_layout_of(dnnl, KILN_MD_IMAGE, md, ret, err) : status;
}

KilnStatus kiln_layout_panels(KilnDnnl *dnnl, const KilnShape *shape, int64_t rows, KilnLayout *ret,
                              KilnError *err)
{
    const KilnMdFacts facts = { .rank = 4,
                                .dims = { shape->dim[0], shape->dim[1], 1, 1 },
                                .type = dnnl_f32 };
    const dnnl_format_tag_t tag = rows == 32   ? dnnl_Abcd32a
                                  : rows == 16 ? dnnl_Abcd16a
                                               : dnnl_Abcd8a;
    KilnMdStore md;
    const dnnl_status_t made = kiln_md_init(&md, &facts, tag);

    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, "a memory descriptor");
    const KilnStatus status = kiln_layout_of(dnnl, KILN_MD_WEIGHT, kiln_md_get(&md), ret, err);
    kiln_md_release(&md);
    return status;
}

int64_t kiln_layout_whole_block(KilnDnnl *dnnl, const KilnArg *image)
{
    const int64_t block = kiln_layout_block(dnnl, image->layout, &image->shape);

    return block > 0 && image->shape.dim[3] % block == 0 ? block : 0;
}

/* Whole blocks need no padding, so the size stays that of plain order. */
KilnStatus kiln_layout_set_block(KilnDnnl *dnnl, KilnArg *image, int64_t block, KilnError *err)
{
    image->layout = KILN_PLAIN;
    if (block == 0)
        return KILN_OK;
    return kiln_layout_image(dnnl, image->dtype, &image->shape,
                             block == 16 ? KILN_MD_C16 : KILN_MD_C8, &image->layout, err);
}

void kiln_output_layout(const KilnDnnl *dnnl, KilnArg *output, KilnLayout layout)
{
    output->layout = layout;
    if (layout != KILN_PLAIN)
        output->bytes = kiln_md_bytes(kiln_layout_md(dnnl, layout, NULL));
}

/* ---- The engine --------------------------------------------------------------- */

KilnStatus kiln_dnnl_init(KilnDnnl *dnnl, int threads, KilnError *err)
{
    dnnl_status_t status = dnnl_engine_create(&dnnl->engine, dnnl_cpu, 0);

    dnnl->threads = threads;
    if (status == dnnl_success)
        status = dnnl_stream_create(&dnnl->stream, dnnl->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&dnnl->attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(dnnl->attr, dnnl_scratchpad_mode_user);
    return status == dnnl_success ? KILN_OK : kiln_dnnl_error(err, status, "an engine");
}

void kiln_dnnl_release(KilnDnnl *dnnl)
{
    for (size_t i = 0; i < dnnl->count; i++) {
        kiln_md_release(dnnl->entries[i].md);
        free(dnnl->entries[i].md);
    }
    free(dnnl->entries);
    dnnl_primitive_attr_destroy(dnnl->attr);
    dnnl_stream_destroy(dnnl->stream);
    dnnl_engine_destroy(dnnl->engine);
    *dnnl = (KilnDnnl) { 0 };
}
