"""Record tests/data/tars: archives of each format with the same files, and damaged ones.

    python3 tests/record/tars.py        needs Python alone"""

import gzip
import io
import pathlib
import tarfile

OUT = pathlib.Path(__file__).parent.parent / "data" / "tars"
LONG = "deep/" + "folder-" * 14 + "/" + "name-" * 20 + ".txt"
FILES = {"a-b/1.txt": b"one", "a/2.txt": b"two" * 400, "a/empty": b"", "./b/\u00fc.txt": b"three", LONG: b"long", "a/2.txt ": b"blank"}


def make(format):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=format) as tar:
        folder = tarfile.TarInfo("a")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in [*FILES.items(), ("a/2.txt", b"newer")]:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if name == "a/empty":
                info.mtime = 2**40  # more than octal digits hold
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("a/link")
        link.type, link.linkname = tarfile.SYMTYPE, "2.txt"
        tar.addfile(link)
    return data.getvalue()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*"):
        old.unlink()
    gnu = make(tarfile.GNU_FORMAT)
    files = {"gnu.tar": gnu, "pax.tar": make(tarfile.PAX_FORMAT), "packed.tar.gz": gzip.compress(gnu, mtime=0)}
    files["bad_cut.tar"] = gnu[:1000]
    files["bad_no_end.tar"] = gnu[:512]
    files["bad_checksum.tar"] = gnu[:512] + b"x" + gnu[513:]
    files["bad_text.tar"] = b"no tar " * 200
    files["bad_size.tar"] = bytearray(gnu)
    files["bad_size.tar"][512 + 124 : 512 + 136] = b"77777777777\0"
    header = bytes(files["bad_size.tar"][512:1024])
    total = sum(header[:148]) + 8 * 32 + sum(header[156:])
    files["bad_size.tar"][512 + 148 : 512 + 156] = b"%06o\0 " % total
    for name, data in files.items():
        (OUT / name).write_bytes(data)


main()
