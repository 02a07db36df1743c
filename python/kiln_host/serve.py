"""Answers kiln's calls: describes a class, makes an object of it, and calls its methods."""
import os
import random
import select
import sys
import threading
import traceback

from kiln_host import data, describe, objects, raw, values
from kiln_host.channel import Channel


def _watch(connection):
    """End with kiln, also while a method of the user's runs."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLHUP)
    poll.poll()
    os._exit(0)


def _where(error):
    """The innermost line of the user's code: (file, line, function)."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("kiln_host/")]
    frames = [f for f in frames if not f.filename.startswith("<frozen")] or frames
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0, ""
    return (frames[-1].filename, frames[-1].lineno or 0, frames[-1].name) if frames else ("", 0, "")


def _failure(error):
    if isinstance(error, (describe.Refused, values.NumpyMissing, data.Wrong)):
        return {"refused": str(error)}
    file, line, function = _where(error)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return {"type": type(error).__name__, "message": message, "file": file, "line": line, "function": function,
            "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__))}


class Server:
    def __init__(self, channel):
        self.channel = channel
        self.object = None

    def locate(self, request):
        return {"file": describe.locate(request["name"])}

    def describe(self, request):
        found = describe.describe(request["name"], request.get("kind"))
        if found["kind"] == "datamodule":
            found["raw"] = raw.fields(describe.load(request["name"]))
        return found

    def make(self, request):
        """Make the object that all further calls are for."""
        random.seed(request["seed"])
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(request["seed"] % 2**32)
        cls = describe.load(request["name"])
        kind = data.Data if request["kind"] == "datamodule" else objects.KINDS[request["kind"]]
        self.object = kind(self.channel, cls, describe.convert(cls, request["options"]))
        return {}

    def answer(self, request):
        call = request.pop("call")
        if call in ("locate", "describe", "make"):
            return getattr(self, call)(request)
        return getattr(self.object, call)(**request)


def run(connection, memory_fd):
    threading.Thread(target=_watch, args=(connection,), daemon=True).start()
    channel = Channel(connection, memory_fd)
    server = Server(channel)
    while True:
        request = channel.read()
        if request["call"] == "end":
            return  # Python then flushes files, and calls what atexit has
        try:
            reply = server.answer(request)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit of the user's code, too
            reply = {"error": _failure(error)}
        sys.stdout.flush()
        try:
            channel.write(reply)
        except (TypeError, ValueError) as error:
            channel.write({"error": _failure(error)})
