"""kiln's tokenizers through libkiln.so, for comparisons with Hugging Face's library."""
import ctypes
import pathlib

NONE, BYTES, CHARACTERS = range(3)


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_char)), ("length", ctypes.c_size_t), ("capacity", ctypes.c_size_t),
                ("failed", ctypes.c_bool)]


class Input(ctypes.Structure):
    _fields_ = [("text", String), ("pair", ctypes.POINTER(String)), ("add_special_tokens", ctypes.c_bool),
                ("offsets", ctypes.c_int)]


class Span(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_uint32), ("end", ctypes.c_uint32)]


class Encoding(ctypes.Structure):
    _fields_ = [("ids", ctypes.POINTER(ctypes.c_int32)), ("spans", ctypes.POINTER(Span)),
                ("types", ctypes.POINTER(ctypes.c_uint8)), ("special", ctypes.POINTER(ctypes.c_uint8)),
                ("sequences", ctypes.POINTER(ctypes.c_uint8)), ("n", ctypes.c_size_t), ("capacity", ctypes.c_size_t),
                ("work", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 2048), ("source", ctypes.c_char_p),
                ("line", ctypes.c_int), ("column", ctypes.c_int)]


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return String(data, len(data))


class Library:
    def __init__(self, build):
        self.lib = ctypes.CDLL(str(pathlib.Path(build, "libkiln.so").resolve()))
        self.lib.kiln_token_pipeline_token.restype = String
        self.lib.kiln_token_pipeline_size.restype = ctypes.c_int64

    def check(self, status, error):
        if status < 0:
            raise ValueError(error.text.decode(errors="replace"))

    def open(self, path):
        handle, error = ctypes.c_void_p(), Error()
        self.check(self.lib.kiln_token_pipeline_open(str(path).encode(), ctypes.byref(handle), ctypes.byref(error)), error)
        return Tokenizer(self, handle)


class Tokenizer:
    def __init__(self, library, handle):
        self.library, self.lib, self.handle, self.encoding = library, library.lib, handle, Encoding()

    def __del__(self):
        self.lib.kiln_encoding_release(ctypes.byref(self.encoding))
        self.lib.kiln_token_pipeline_free(self.handle)

    def encode(self, text, pair=None, special=True, offsets=CHARACTERS):
        """ids, offsets, type ids, mask of added special tokens."""
        second, error, e = string(pair if pair is not None else ""), Error(), self.encoding
        given = Input(string(text), ctypes.pointer(second) if pair is not None else None, special, offsets)
        self.library.check(self.lib.kiln_token_pipeline_encode(self.handle, ctypes.byref(given), ctypes.byref(e),
                                                               ctypes.byref(error)), error)
        n = e.n
        return e.ids[:n], [(s.begin, s.end) for s in e.spans[:n]], e.types[:n], e.special[:n]

    def decode(self, ids, skip_special=True):
        text, error = Text(), Error()
        self.library.check(self.lib.kiln_token_pipeline_decode(
            self.handle, (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t(len(ids)), ctypes.c_bool(skip_special),
            ctypes.byref(text), ctypes.byref(error)), error)
        got = text.data[:text.length] if text.data else b""
        self.lib.kiln_text_release(ctypes.byref(text))
        return got.decode()

    def save(self, path):
        error = Error()
        self.library.check(self.lib.kiln_token_pipeline_save(self.handle, str(path).encode(), ctypes.byref(error)), error)
