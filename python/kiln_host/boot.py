"""Runs as `python3 -c`: receives the modules of kiln_host from kiln, which carries them, and starts the server."""
import json
import socket
import struct
import sys
import types


def receive(channel, n):
    data = b""
    while len(data) < n:
        part = channel.recv(n - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def boot(channel_fd, memory_fd):
    channel = socket.socket(fileno=channel_fd)
    size, = struct.unpack("<I", receive(channel, 4))
    start = json.loads(receive(channel, size))
    if sys.path and sys.path[0] == "":  # of -c: the current folder, which may not be the user's project
        del sys.path[0]
    if start["folder"] is not None:
        sys.path.insert(0, start["folder"])
    package = types.ModuleType("kiln_host")
    package.__path__ = []
    sys.modules["kiln_host"] = package
    for name, source in start["modules"]:  # in an order in which each imports only earlier ones
        module = types.ModuleType("kiln_host." + name)
        sys.modules[module.__name__] = module
        exec(compile(source, "kiln_host/" + name + ".py", "exec"), module.__dict__)
        setattr(package, name, module)
    package.serve.run(channel, memory_fd)


boot(int(sys.argv[1]), int(sys.argv[2]))
