"""Record tests/data/formats: small JPEG and WebP files of every kind, what Pillow decodes them to (as PNG), damaged
ones, and files with each EXIF orientation.

    python3 tests/record/image_formats.py        needs pillow, numpy, and jpegtran of libjpeg-turbo

The pixels of NAME are in NAME.png; the large files are for reading parts of them, and all in bad/ must be refused."""

import io
import pathlib
import struct
import subprocess
import zlib

import numpy as np
from PIL import Image, ImageOps

OUT = pathlib.Path(__file__).parent.parent / "data" / "formats"


def picture(height, width, channels=3):
    """Waves of some colours with sharp edges: neither flat nor noise."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [np.sin(x / (5 + 2 * c) + c) * np.cos(y / (7 - c)) * 90 + 128 + 30 * ((x + y) % 17 > 8) for c in range(channels)]
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def encode(image, kind, **options):
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def transcode(data, *options):
    return subprocess.run(["jpegtran", *options], input=data, stdout=subprocess.PIPE, check=True).stdout


def to_rgb(image):
    """Pillow's colours, with alpha over black."""
    rgba = np.asarray(image.convert("RGBA"), np.float64)
    return Image.fromarray(np.round(rgba[..., :3] * rgba[..., 3:] / 255).astype(np.uint8))


def kinds():
    rgb = Image.fromarray(picture(37, 53))
    grey = Image.fromarray(picture(37, 53, 1)[..., 0])
    rgba = Image.fromarray(np.concatenate([picture(37, 53), picture(37, 53, 1)], -1))
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        yield f"rgb_{name}.jpg", encode(rgb, "JPEG", quality=85, subsampling=subsampling)
    yield "rgb_progressive.jpg", encode(rgb, "JPEG", quality=85, progressive=True)
    yield "rgb_arithmetic.jpg", transcode(encode(rgb, "JPEG", quality=85), "-arithmetic")
    yield "rgb_restart.jpg", transcode(encode(rgb, "JPEG", quality=85), "-restart", "2")
    yield "grey.jpg", encode(grey, "JPEG", quality=85)
    yield "grey_progressive.jpg", encode(grey, "JPEG", quality=85, progressive=True)
    yield "cmyk.jpg", encode(rgb.convert("CMYK"), "JPEG", quality=85)
    yield "one_pixel.jpg", encode(rgb.crop((0, 0, 1, 1)), "JPEG")
    yield "rgb_lossy.webp", encode(rgb, "WEBP", quality=85)
    yield "rgb_lossless.webp", encode(rgb, "WEBP", lossless=True)
    yield "rgba_lossy.webp", encode(rgba, "WEBP", quality=85)
    yield "rgba_lossless.webp", encode(rgba, "WEBP", lossless=True, exact=True)
    yield "one_pixel.webp", encode(rgb.crop((0, 0, 1, 1)), "WEBP", lossless=True)
    yield "large_420.jpg", encode(Image.fromarray(picture(180, 260)), "JPEG", quality=60, subsampling=2)
    yield "large_progressive.jpg", encode(Image.fromarray(picture(180, 260)), "JPEG", quality=60, progressive=True)


def exif(orientation, order=">"):
    mark = b"MM\0*" if order == ">" else b"II*\0"
    return (mark + struct.pack(order + "IH", 8, 2) + struct.pack(order + "HHIHH", 0x100, 3, 1, 7, 0)
            + struct.pack(order + "HHIHH", 0x112, 3, 1, orientation, 0) + struct.pack(order + "I", 0))


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# What undoes the orientation of a file is applied to the upright image to store it.
STORE = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE, 6: Image.ROTATE_90,
         7: Image.TRANSVERSE, 8: Image.ROTATE_270}


def orientations():
    upright = Image.fromarray(picture(10, 14))
    yield "upright.png", encode(upright, "PNG")
    for number in range(1, 9):
        stored = upright.transpose(STORE[number]) if number > 1 else upright
        tag = exif(number, "<" if number % 2 else ">")
        png = encode(stored, "PNG")
        files = {"png": png[:33] + png_chunk(b"eXIf", tag) + png[33:],
                 "jpg": encode(stored, "JPEG", quality=100, subsampling=0, exif=b"Exif\0\0" + tag),
                 "webp": encode(stored, "WEBP", lossless=True, exif=tag)}
        for ending, data in files.items():
            seen = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
            assert np.abs(np.asarray(seen, float) - np.asarray(upright, float)).max() < 6, (number, ending)
            yield f"oriented_{number}.{ending}", data


def with_size(data, height, width):
    at = data.index(b"\xff\xc0")
    return data[: at + 5] + struct.pack(">HH", height, width) + data[at + 9 :]


def many_scans():
    """The first scan of a progressive file 600 times."""
    tiny = encode(Image.fromarray(picture(8, 8, 1)[..., 0]), "JPEG", progressive=True)
    first = tiny.index(b"\xff\xda")
    second = min(at for at in (tiny.find(mark, first + 2) for mark in (b"\xff\xc4", b"\xff\xda")) if at > 0)
    return tiny[:first] + tiny[first:second] * 600 + tiny[second:]


def damaged():
    rgb = Image.fromarray(picture(37, 53))
    jpeg, webp = encode(rgb, "JPEG", quality=85), encode(rgb, "WEBP", quality=85)
    progressive = encode(rgb, "JPEG", quality=85, progressive=True)
    yield "only_soi.jpg", jpeg[:2]
    yield "header_cut.jpg", jpeg[:30]
    yield "no_scan.jpg", jpeg[: jpeg.index(b"\xff\xda")]
    yield "cut.jpg", jpeg[: len(jpeg) // 2]
    yield "no_end.jpg", jpeg[:-2]
    yield "cut_with_end.jpg", jpeg[: len(jpeg) // 2] + b"\xff\xd9"
    yield "progressive_cut.jpg", progressive[: len(progressive) // 2]
    yield "huge.jpg", with_size(jpeg, 65535, 65535)
    yield "lie.jpg", with_size(jpeg, 9000, 9000)
    yield "zero.jpg", with_size(jpeg, 0, 53)
    yield "no_tables.jpg", jpeg[:20] + jpeg[jpeg.index(b"\xff\xc0") :]
    yield "scans.jpg", many_scans()
    yield "twelve_bits.jpg", jpeg.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc1\0\x11\x0c")
    yield "lossless.jpg", jpeg.replace(b"\xff\xc0", b"\xff\xc3")
    yield "header_cut.webp", webp[:20]
    yield "cut.webp", webp[: len(webp) // 2]
    yield "animation.webp", encode(rgb, "WEBP", save_all=True, append_images=[rgb.rotate(90)])
    yield "other.gif", encode(rgb, "GIF")


def main():
    for old in OUT.glob("**/*.*"):
        old.unlink()
    (OUT / "bad").mkdir(parents=True, exist_ok=True)
    for name, data in kinds():
        (OUT / name).write_bytes(data)
        if not name.startswith("large"):
            to_rgb(Image.open(io.BytesIO(data))).save((OUT / name).with_name(name + ".png"))
    for name, data in orientations():
        (OUT / name).write_bytes(data)
    for name, data in damaged():
        (OUT / "bad" / name).write_bytes(data)


main()
