/* The checks, and the files that have them. */
#ifndef KILN_CLI_CHECKS_CHECKS_H
#define KILN_CLI_CHECKS_CHECKS_H

#include "cli/contract/case.h"

/* What must have passed before. */
typedef enum KilnCheckNeeds {
    KILN_NEEDS_NOTHING,
    KILN_NEEDS_INSTANCE, /* the component can be built */
    KILN_NEEDS_RUN       /* a run with it ends well */
} KilnCheckNeeds;

typedef struct KilnContractCheck {
    const char *name; /* of its row in the report */
    void (*run)(KilnCase *self);
    unsigned kinds; /* bits: 1u << KILN_KIND_MODEL; 0: all */
    KilnCheckNeeds needs;
    KilnCheckNeeds gives; /* what later checks may rely on, once it has passed */
} KilnContractCheck;

/* The i-th check, in the order in which they run; NULL after the last. */
const KilnContractCheck *kiln_contract_check_at(size_t i);

/* check_instance.c */
void kiln_contract_options(KilnCase *self);
void kiln_contract_building(KilnCase *self);
void kiln_contract_leaks(KilnCase *self);
/* check_config_files.c */
void kiln_contract_config_files(KilnCase *self);
/* check_run.c */
void kiln_contract_training(KilnCase *self);
void kiln_contract_same_bytes(KilnCase *self);
void kiln_contract_threads(KilnCase *self);
void kiln_contract_resuming(KilnCase *self);
void kiln_contract_killed(KilnCase *self);
void kiln_contract_run_leaks(KilnCase *self);
/* check_gradients.c */
void kiln_contract_gradients(KilnCase *self);
/* check_loss.c */
void kiln_contract_loss(KilnCase *self);
/* check_samples.c */
void kiln_contract_samples(KilnCase *self);
/* check_predicting.c */
void kiln_contract_predicting(KilnCase *self);
/* check_images.c */
void kiln_contract_images(KilnCase *self);
/* check_order.c */
void kiln_contract_order(KilnCase *self);
/* check_batches.c */
void kiln_contract_batches(KilnCase *self);
/* check_update.c */
void kiln_contract_update(KilnCase *self);
/* check_factors.c */
void kiln_contract_factors(KilnCase *self);
/* check_values.c */
void kiln_contract_values(KilnCase *self);
/* check_texts.c */
void kiln_contract_texts(KilnCase *self);
/* check_search.c */
void kiln_contract_search(KilnCase *self);
/* check_processes.c */
void kiln_contract_jobs(KilnCase *self);
void kiln_contract_ranks(KilnCase *self);

#endif
