"""The connection to kiln: messages of JSON, each after its length, and arrays in memory that both map."""
import json
import mmap
import os
import struct

ALIGNMENT = 64


class Channel:
    def __init__(self, connection, memory_fd):
        self._connection = connection
        self._memory_fd = memory_fd
        self._memory = None
        self._size = 0
        self._used = 0

    def _receive(self, n):
        data = self._connection.recv(n)
        while len(data) < n:
            part = self._connection.recv(n - len(data))
            if not part:
                os._exit(0)  # kiln is gone
            data += part
        return data

    def read(self):
        size, = struct.unpack("<I", self._receive(4))
        self._used = 0
        return json.loads(self._receive(size))

    def write(self, message):
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        self._connection.sendall(struct.pack("<I", len(data)) + data)

    def _map(self, size):
        if size > self._size:
            self._size = os.fstat(self._memory_fd).st_size
        if size > self._size:
            self._size = max(size, 2 * self._size)
            os.ftruncate(self._memory_fd, self._size)
        if self._memory is None or len(self._memory) < self._size:
            self._memory = mmap.mmap(self._memory_fd, self._size)

    def put(self, data):
        """Copy bytes to the shared memory, after those of the same message; the offset."""
        at = self._used
        self._used = (at + len(data) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        if self._used > self._size or self._memory is None:
            self._map(max(self._used, 1))
        self._memory[at:at + len(data)] = data
        return at

    def get(self, at, size):
        """A copy of bytes that kiln put there."""
        if size > 0:
            self._map(at + size)
        return self._memory[at:at + size] if size > 0 else b""
