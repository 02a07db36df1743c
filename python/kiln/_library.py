"""Finds and loads libkiln.so, and declares what the package calls of it.

The declarations are C's own prototypes, as they stand in the headers below src/kiln; a test compares them. So no type
can drift from the library's, and no struct has a layout here: see src/kiln/flat/config.h.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import re
import threading

__version__ = "0.1.0"

PROTOTYPES = """
const char *kiln_flat_version(void);
const char *kiln_status_name(KilnStatus status);
KilnError *kiln_flat_error_new(void);
void kiln_flat_error_free(KilnError *err);
const char *kiln_flat_error_text(const KilnError *err);
KilnStatus kiln_flat_error_set(KilnError *err, KilnStatus status, const char *text);

KilnStatus kiln_registry_new(KilnRegistry **ret, KilnError *err);
void kiln_registry_free(KilnRegistry *registry);
KilnStatus kiln_registry_load(KilnRegistry *registry, const char *path, KilnError *err);

KilnStatus kiln_errors_new(KilnErrors **ret);
void kiln_errors_free(KilnErrors *errors);
size_t kiln_errors_count(const KilnErrors *errors);
const char *kiln_errors_text(const KilnErrors *errors, size_t i);
bool kiln_errors_is_warning(const KilnErrors *errors, size_t i);

KilnStatus kiln_flat_compose(const KilnRegistry *registry, const char *config_path, const char *config_name,
    const char *const *config_dirs, const char *const *overrides, KilnConfig **ret, KilnErrors *errors);
KilnStatus kiln_flat_compose_resumed(const KilnRegistry *registry, const char *run, const char *const *overrides,
    KilnConfig **ret, KilnErrors *errors);
KilnStatus kiln_flat_compose_checkpoint(const KilnRegistry *registry, const char *checkpoint,
    const char *const *overrides, KilnConfig **ret, KilnError *err);
KilnStatus kiln_flat_explain_run(const char *run, const char *key, char **ret, KilnError *err);
char *kiln_flat_override(const char *key, const char *value);
KilnStatus kiln_flat_config_json(const KilnConfig *config, char **ret, KilnError *err);
KilnStatus kiln_flat_config_origins(const KilnConfig *config, char **ret, KilnError *err);
KilnStatus kiln_config_yaml(const KilnConfig *config, const char *key, bool resolve, char **ret, KilnError *err);
KilnStatus kiln_config_explain(const KilnConfig *config, const char *key, char **ret, KilnError *err);
void kiln_config_free(KilnConfig *config);

KilnFlatData *kiln_flat_data_new(void);
void kiln_flat_data_free(KilnFlatData *data);
KilnStatus kiln_flat_data_feature(KilnFlatData *data, const char *name, const char *content, int dtype, int rank,
    const int64_t *dims, bool varies, int64_t n_ids, KilnError *err);
KilnStatus kiln_flat_data_classes(KilnFlatData *data, const char *const *names, int64_t n, KilnError *err);
KilnStatus kiln_flat_data_samples(KilnFlatData *data, const char *split, int64_t n, KilnError *err);
KilnStatus kiln_flat_data_array(KilnFlatData *data, const char *split, const char *name, int dtype, const void *values,
    const int64_t *lengths, KilnError *err);

typedef void KilnFlatWrite(void *ctx, const char *text);
typedef void KilnFlatProgress(void *ctx, int64_t epoch, int64_t max_epochs, int64_t step, int64_t max_steps);
typedef void KilnFlatRow(void *ctx, const char *phase, int64_t epoch, int64_t step, const char *const *names,
    const double *values, size_t n);
KilnFlatEnv *kiln_flat_env_new(const KilnRegistry *registry, void *ctx);
void kiln_flat_env_free(KilnFlatEnv *env);
KilnStatus kiln_flat_env_overrides(KilnFlatEnv *env, const char *const *overrides, KilnError *err);
void kiln_flat_env_console(KilnFlatEnv *env, KilnFlatWrite *write, bool terminal, bool colour, bool utf8, int width);
void kiln_flat_env_progress(KilnFlatEnv *env, KilnFlatProgress *progress);
void kiln_flat_env_rows(KilnFlatEnv *env, KilnFlatRow *row);
void kiln_flat_env_data(KilnFlatEnv *env, const KilnFlatData *data);
KilnStatus kiln_flat_env_resume(KilnFlatEnv *env, const char *run, KilnError *err);
void kiln_flat_env_stop(KilnFlatEnv *env, int number);
KilnStatus kiln_flat_fit(KilnFlatEnv *env, KilnConfig *config, KilnError *err);
KilnStatus kiln_flat_fit_open(KilnFlatEnv *env, KilnConfig *config, KilnFit **ret, KilnError *err);
KilnStatus kiln_flat_fit_close(KilnFlatEnv *env, KilnFit *fit, KilnError *err);
KilnStatus kiln_fit_step(KilnFit *fit, bool *ret_more, KilnError *err);
KilnTrainer *kiln_fit_trainer(KilnFit *fit);
const char *kiln_flat_run_dir(const KilnFlatEnv *env);
KilnStatus kiln_flat_eval(KilnFlatEnv *env, KilnConfig *config, const char *split, char **ret_json, KilnError *err);
KilnStatus kiln_checkpoint_resolve(const char *ckpt_path, const char *runs, char **ret, KilnError *err);

int64_t kiln_trainer_epoch(const KilnTrainer *trainer);
int64_t kiln_trainer_global_step(const KilnTrainer *trainer);
int64_t kiln_trainer_batch(const KilnTrainer *trainer);
int64_t kiln_trainer_batches(const KilnTrainer *trainer);
const char *kiln_trainer_phase(const KilnTrainer *trainer);
const char *kiln_trainer_run_dir(const KilnTrainer *trainer);
double kiln_trainer_learning_rate(const KilnTrainer *trainer);
void kiln_trainer_set_learning_rate(KilnTrainer *trainer, double lr);
bool kiln_trainer_loss(const KilnTrainer *trainer, double *ret);
bool kiln_trainer_metric(const KilnTrainer *trainer, const char *name, double *ret);
void kiln_trainer_log(KilnTrainer *trainer, const char *name, double value, unsigned flags);
void kiln_trainer_stop(KilnTrainer *trainer, const char *reason);
bool kiln_flat_metric(const KilnTrainer *trainer, size_t i, const char **ret_name, double *ret_value);
const float *kiln_flat_output(const KilnTrainer *trainer, size_t i, const char **ret_name, int *ret_rank,
    int64_t *ret_dims);
const void *kiln_flat_feature(const KilnTrainer *trainer, const char *name, int *ret_dtype, int *ret_rank,
    int64_t *ret_dims);
void kiln_flat_print(KilnTrainer *trainer, const char *text);
KilnStatus kiln_flat_save(KilnTrainer *trainer, const char *name, KilnError *err);

typedef KilnStatus KilnFlatCreate(void *ctx, const char *path, const char *options, void **ret, KilnError *err);
typedef void KilnFlatDestroy(void *ctx, void *object);
typedef KilnStatus KilnFlatHook(void *object, const char *hook, KilnTrainer *trainer, KilnError *err);
typedef KilnStatus KilnFlatSave(void *object, KilnState *state, KilnError *err);
typedef KilnStatus KilnFlatLoad(void *object, const KilnState *state, KilnError *err);
typedef KilnStatus KilnFlatCompute(void *object, KilnMetricState *state, int64_t rows, int64_t width,
    const float *scores, const void *truth, KilnError *err);
typedef KilnStatus KilnFlatSetup(void *object, const char *stage, uint64_t seed, KilnFlatData *data, KilnError *err);
typedef KilnStatus KilnFlatGet(void *object, const char *split, int64_t index, void *const *to, int64_t *lengths,
    KilnError *err);
KilnStatus kiln_flat_component_new(const char *kind, const char *name, const char *summary, KilnFlatCreate *create,
    KilnFlatDestroy *destroy, void *ctx, KilnFlatComponent **ret, KilnError *err);
void kiln_flat_component_free(KilnFlatComponent *component);
KilnStatus kiln_flat_component_option(KilnFlatComponent *component, const char *name, const char *type,
    const char *value, const char *const *choices, const char *help, KilnError *err);
KilnStatus kiln_flat_component_add(KilnFlatComponent *component, KilnRegistry *registry, KilnError *err);
KilnStatus kiln_flat_callback_hook(KilnFlatComponent *component, const char *hook, KilnFlatHook *call, KilnError *err);
KilnStatus kiln_flat_callback_logs(KilnFlatComponent *component, const char *name, const char *mode, KilnError *err);
void kiln_flat_callback_state(KilnFlatComponent *component, KilnFlatSave *save, KilnFlatLoad *load);
KilnStatus kiln_flat_metric_ops(KilnFlatComponent *component, const char *takes, const char *mode,
    KilnFlatCompute *compute, KilnError *err);
void kiln_flat_datamodule_ops(KilnFlatComponent *component, KilnFlatSetup *setup, KilnFlatGet *get);
void kiln_state_set_str(KilnState *state, const char *name, const char *value);
bool kiln_state_get_str(const KilnState *state, const char *name, const char **ret);
KilnStatus kiln_metric_state_report(KilnMetricState *state, const char *name, double value, KilnError *err);

KilnStatus kiln_flat_predictor_open(const KilnRegistry *registry, const char *ckpt_path, const char *const *overrides,
    int max_calls, KilnPredictor **ret, KilnError *err);
void kiln_predictor_free(KilnPredictor *predictor);
const char *kiln_predictor_checkpoint(const KilnPredictor *predictor);
KilnStatus kiln_flat_predictor_describe(const KilnPredictor *predictor, char **ret, KilnError *err);
KilnFlatSamples *kiln_flat_samples_new(size_t n);
void kiln_flat_samples_free(KilnFlatSamples *samples);
KilnStatus kiln_flat_samples_arrays(KilnFlatSamples *samples, const char *name, int dtype, int rank,
    const int64_t *dims, const void *data, KilnError *err);
KilnStatus kiln_flat_samples_array(KilnFlatSamples *samples, size_t i, const char *name, int dtype, int rank,
    const int64_t *dims, const void *data, KilnError *err);
KilnStatus kiln_flat_samples_text(KilnFlatSamples *samples, size_t i, const char *name, int type, const char *text,
    KilnError *err);
KilnStatus kiln_flat_samples_bytes(KilnFlatSamples *samples, size_t i, const char *name, const void *data, size_t size,
    KilnError *err);
KilnStatus kiln_flat_samples_number(KilnFlatSamples *samples, size_t i, const char *name, double number,
    KilnError *err);
KilnStatus kiln_flat_predict(KilnPredictor *predictor, const KilnFlatSamples *samples, KilnPredictions **ret,
    KilnError *err);
void kiln_predictions_free(KilnPredictions *predictions);
int64_t kiln_flat_predictions_failed(const KilnPredictions *predictions, size_t from, const char **ret_message);
const char *kiln_flat_predictions_output(const KilnPredictions *predictions, size_t i, size_t output, int *ret_rank,
    int64_t *ret_dims, bool *ret_same);
void kiln_flat_predictions_copy(const KilnPredictions *predictions, size_t i, size_t n, size_t output, float *to);
char *kiln_flat_predictions_results(const KilnPredictions *predictions, size_t i);

KilnStatus kiln_flat_sweep(KilnFlatEnv *env, const char *config_path, const char *config_name,
    const char *const *config_dirs, const char *const *overrides, const char *resume, char **ret_dir,
    KilnErrors *errors);
"""

# Enumerators that the package uses, in the order of their enums; the same test compares them.
DTYPES = {"float32": 0, "int32": 1, "uint8": 2, "int64": 3, "float64": 4}  # KilnDType, by numpy's names
RAW_PATH, RAW_TEXT = 1, 4  # KilnRawType
LOG_STEP, LOG_EPOCH, LOG_PROG_BAR = 1, 2, 4  # KilnLogFlags
E_PLUGIN = -13  # KilnStatus
MAX_RANK = 6  # KILN_MAX_RANK

_SCALARS = {"void": None, "bool": ctypes.c_bool, "int": ctypes.c_int, "unsigned": ctypes.c_uint,
            "KilnStatus": ctypes.c_int, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
            "size_t": ctypes.c_size_t, "double": ctypes.c_double}
_NUMBERS = {"bool", "int", "int64_t", "double"}  # whose addresses are typed
functions: dict[str, type] = {}  # of typedef'ed functions, by name


def _type(text: str):
    """The ctypes type of a C type: "const char *", "KilnConfig **", ..."""
    base = re.sub(r"\bconst\b|\*", "", text).strip()
    stars = text.count("*")
    if stars == 0:
        return _SCALARS[base]
    if stars == 1 and base in functions:
        return functions[base]
    if base == "char" and text.startswith("const"):
        return ctypes.c_char_p if stars == 1 else ctypes.POINTER(ctypes.c_char_p)
    if stars == 1:
        return ctypes.POINTER(_SCALARS[base]) if base in _NUMBERS else ctypes.c_void_p
    return ctypes.POINTER(ctypes.c_void_p)


def parse(prototype: str) -> tuple[str, str, list[str]]:
    """The returned type, the name and the types of the arguments of a prototype."""
    match = re.fullmatch(r"(.*?)(\w+)\((.*)\)", prototype)
    assert match, prototype
    arguments = [] if match[3] == "void" else re.split(r",\s*", match[3])
    return match[1].strip(), match[2], [re.fullmatch(r"(.*?)\w+", argument)[1].strip() for argument in arguments]


def prototypes() -> list[str]:
    return [re.sub(r"\s+", " ", text).strip() for text in PROTOTYPES.split(";") if text.strip()]


def _declare(library: ctypes.CDLL) -> None:
    for prototype in prototypes():
        is_type = prototype.startswith("typedef ")
        returned, name, arguments = parse(prototype.removeprefix("typedef "))
        types = [_type(argument) for argument in arguments]
        if is_type:
            functions[name] = ctypes.CFUNCTYPE(_type(returned), *types)
            continue
        function = getattr(library, name)
        function.argtypes = types
        function.restype = _type(returned)


def _candidates() -> list[str]:
    here = pathlib.Path(__file__).resolve().parent
    chosen = os.environ.get("KILN_LIBRARY")
    if chosen:
        return [chosen]
    near = [here / "libkiln.so", here.parents[1] / "build/release/libkiln.so"]  # of the wheel, of a checkout
    return [str(path) for path in near if path.exists()] + ["libkiln.so.0"]


def _load() -> ctypes.CDLL:
    # Read when the library is loaded: waiting OpenMP threads sleep soon, as in the commands.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    path = _candidates()[0]
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"kiln: {path} cannot be loaded: {error}; install the libraries that it needs (`ldd {path}` "
                          "lists them), or name another libkiln.so in the environment variable KILN_LIBRARY") from None
    try:
        _declare(library)
    except AttributeError as error:
        raise ImportError(f"kiln: {path} is of another version than this package, {__version__}: {error}") from None
    version = library.kiln_flat_version().decode()
    if version != __version__:
        raise ImportError(f"kiln: {path} has version {version}, this package {__version__}")
    return library


lib = _load()
_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


# ---- Errors ----------------------------------------------------------------------------------------------------------


class KilnError(Exception):
    """What went wrong, where, and what to do. `status` is kiln's name of the kind of error ("out of range")."""

    def __init__(self, text: str, status: str = ""):
        super().__init__(text)
        self.status = status


class ConfigError(KilnError):
    """A config that does not compose or is refused; `messages` has everything that is wrong with it."""

    def __init__(self, messages: list[str], status: str = ""):
        super().__init__("\n".join(messages), status)
        self.messages = messages


class _Local(threading.local):
    def __init__(self):
        self.err = lib.kiln_flat_error_new()
        if not self.err:
            raise MemoryError

    def __del__(self):  # when the thread ends
        lib.kiln_flat_error_free(self.err)


_local = _Local()


def err() -> int:
    """This thread's error, for the last argument of functions."""
    return _local.err


def check(status: int, cause: BaseException | None = None) -> None:
    """Raise the error of this thread if `status` says so."""
    if status < 0:
        text = lib.kiln_flat_error_text(_local.err).decode("utf-8", "replace")
        raise KilnError(text, lib.kiln_status_name(status).decode()) from cause


def texts(items) -> ctypes.Array | None:
    """A NULL-terminated array of texts; None for None."""
    if items is None:
        return None
    encoded = [encode(item) for item in items]
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None)


def encode(text) -> bytes | None:
    """A text or path as C takes it."""
    return None if text is None else os.fsencode(os.fspath(text) if isinstance(text, os.PathLike) else str(text))


def take(pointer) -> str:
    """The text of a `char *` that the caller owns, which is freed."""
    address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    if not address:
        raise MemoryError
    try:
        return ctypes.string_at(address).decode("utf-8", "surrogateescape")
    finally:
        _free(address)


def text_of(function, *arguments) -> str:
    """Call a function with `char **ret, KilnError *err` at its end."""
    ret = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(ret), err()))
    return take(ret)
