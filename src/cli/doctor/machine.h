/* What `kiln doctor` tries out: parts that need a library, folders, the kernels and a short
 * training. */
#ifndef KILN_CLI_DOCTOR_MACHINE_H
#define KILN_CLI_DOCTOR_MACHINE_H

#include "base/text.h"

/* The i-th part of kiln that needs a library which may be missing: *ret_name, "plots"; appends
 * "yes", or what is missing and how to install it. False after the last. */
bool kiln_doctor_part(size_t i, const char **ret_name, KilnText *ret);
/* The i-th folder that kiln writes to: appends whether it can, and the space that is free. False
 * after the last. */
bool kiln_doctor_folder(size_t i, const char **ret_name, KilnText *ret);

/* What the self-test found; each text begins with "right" or "wrong". */
typedef struct KilnSelfTest {
    KilnText kernels;      /* f32, against the reference backend */
    KilnText bf16_kernels; /* the same in bf16 */
    KilnText training;     /* a short one */
    double seconds;
    bool right;
} KilnSelfTest;

/* Run the self-test, which takes about a second. Release `ret` in any case. KILN_E_NOMEM only: all
 * else is a finding. */
KILN_NODISCARD KilnStatus kiln_self_test(KilnSelfTest *ret, KilnError *err);
void kiln_self_test_release(KilnSelfTest *test);

#endif
