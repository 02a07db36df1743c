/* A class of Python as a component: its options table, and which functions of its kind it has. */
#ifndef KILN_PYTHON_PYTHON_CLASS_H
#define KILN_PYTHON_PYTHON_CLASS_H

#include <jansson.h>

#include "base/arena.h"
#include "kiln/image.h"
#include "kiln/metric.h"
#include "kiln/trainer.h"
#include "python/host.h"

/* How hosts are started. Borrowed. */
typedef struct KilnPythonEnv {
    const char *python, *folder; /* as in KilnPythonUse */
} KilnPythonEnv;

/* `component` is the first member, so that an instance leads to its class. Of the tables of
 * functions, that of its kind is used; those of datamodules, callbacks and loggers have what the
 * class has. */
typedef struct KilnPythonClass {
    KilnComponent component;
    const char *name; /* "python:mydata.Tweets", also the component's */
    KilnPythonEnv env;
    const char *file, *version; /* of its module, and of Python */
    size_t n_own;               /* rows of the table, the first ones, that are its own options */
    size_t timeout;             /* offset of the option timeout (double) */
    bool has_size, has_open, has_close, has_flush, has_state;
    const KilnRawField *raw_fields; /* of a datamodule: the parameters of preprocess */
    size_t n_raw_fields;            /* 0: it has no preprocess */
    KilnDataModuleOps datamodule;
    KilnMetricOps metric;
    KilnCallbackOps callback;
    KilnLoggerOps logger;
} KilnPythonClass;

/* Make a component of what describe.py said of a class. Lives in the arena. KILN_E_FORMAT: its
 * options can't be used, since one has the name of an option of kiln's, say. */
KILN_NODISCARD KilnStatus kiln_python_class_new(KilnArena *arena, const KilnPythonEnv *env,
                                                const char *name, const json_t *described,
                                                const KilnPythonClass **ret, KilnError *err);

const KilnPythonClass *kiln_python_class_of(const KilnInstance *self);

/* ---- Objects -----------------------------------------------------------------------------------
 */

/* Start a host for an instance and make its object, with the options of the config; of a datamodule
 * it has no object yet. Owned by the caller (kiln_python_host_end). */
KILN_NODISCARD KilnStatus kiln_python_make(const KilnInstance *self, uint64_t seed,
                                           const KilnPoll *poll, KilnPythonHost **ret,
                                           KilnError *err);
/* Call a method and drop its reply; takes the lock. `request` is consumed. */
KILN_NODISCARD KilnStatus kiln_python_tell(KilnPythonHost *host, const char *what, json_t *request,
                                           KilnError *err);

/* ---- Kinds (KilnPythonClass.component and its tables)
 * ---------------------------------------------- */

/* Fill the parts of `class` that its kind needs: options of kiln's own before those of the class,
 * the state, the functions. */
typedef struct KilnPythonKind {
    const KilnField *fields; /* closed by KILN_FIELD_END; one is `timeout` */
    size_t opts_size, timeout;
    size_t state_size;
    KilnStatus (*init)(KilnInstance *self, KilnError *err);
    void (*release)(KilnInstance *self);
    void (*complete)(KilnPythonClass *class, KilnArena *arena, const json_t *described);
} KilnPythonKind;

extern const KilnPythonKind kiln_python_datamodule, kiln_python_transform, kiln_python_callback,
    kiln_python_metric, kiln_python_logger;

/* The row of the option timeout of an options struct T. */
#define KILN_PYTHON_TIMEOUT_FIELD(T)                                                               \
    KILN_FIELD_DURATION(T, timeout, "10m", 0.01, 1e9,                                              \
                        "how long a call of a method may take, also of __init__")
/* The options struct of kinds without other options of kiln's. */
typedef struct KilnPythonOptions {
    double timeout;
} KilnPythonOptions;
extern const KilnField kiln_python_fields[2];

/* Of kinds whose object is made in init: the state, which begins with it, and its functions. */
typedef struct KilnPythonObject {
    KilnPythonHost *host;
} KilnPythonObject;
KilnStatus kiln_python_object_init(KilnInstance *self, KilnError *err);
void kiln_python_object_release(KilnInstance *self);
/* state_dict and load_state_dict of the object. Saving can't fail, so `failure` gets the error, for
 * the next function that can. */
void kiln_python_save_state(KilnInstance *self, KilnState *state, KilnError *failure);
/* That error, or KILN_OK. */
KILN_NODISCARD KilnStatus kiln_python_save_failed(const KilnError *failure, KilnError *err);
KILN_NODISCARD KilnStatus kiln_python_load_state(KilnInstance *self, const KilnState *state,
                                                 KilnError *err);

#endif
