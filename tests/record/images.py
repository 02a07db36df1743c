"""Record tests/data/images: small PNG files of every kind, damaged ones, and in
expected.h what reading and scaling them must give.

    python3 tests/record/images.py        needs pillow, numpy and torch

The files are encoded here, bit by bit, for no library writes all kinds; Pillow
decodes those that it reads as they are, as a check of this encoder."""

import io
import pathlib
import struct
import zlib

import numpy as np
import torch
from PIL import Image

OUT = pathlib.Path(__file__).parent.parent / "data" / "images"
HEIGHT, WIDTH = 5, 7
GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_rows(pixels, depth):
    """Rows of samples [h, w, c] as PNG scan lines, each with filter 0."""
    rows = []
    for row in pixels:
        bits = "".join(format(int(v), f"0{depth}b") for v in row.reshape(-1))
        bits += "0" * (-len(bits) % 8)
        rows.append(b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big"))
    return b"".join(rows)


def encode(pixels, colour, depth, interlaced=False, extra=b"", size=None):
    height, width = size or pixels.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    parts = [pixels]
    if interlaced:
        parts = [pixels[y::dy, x::dx] for y, x, dy, dx in ADAM7]
    data = b"".join(pack_rows(p, depth) for p in parts if p.size)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(data))
            + chunk(b"IEND", b""))


def to_colour(pixels, colour, depth, palette, key):
    """What the file means: RGB of 0..1 with alpha over black."""
    top = 2**depth - 1
    if colour == PALETTE:
        table = np.array([p + (255,) * (4 - len(p)) for p in palette], np.float64) / 255
        rgba = table[pixels[..., 0]]
        return rgba[..., :3] * rgba[..., 3:]
    values = pixels.astype(np.float64) / top
    alpha = np.ones(pixels.shape[:2] + (1,))
    if colour in (GREY_ALPHA, RGB_ALPHA):
        values, alpha = values[..., :-1], values[..., -1:]
    if key is not None:
        alpha = (pixels != np.array(key)).any(-1, keepdims=True).astype(np.float64)
    return np.broadcast_to(values * alpha, pixels.shape[:2] + (3,)).copy()


def kinds(rng):
    """Yields name, bytes, RGB, channels of the file."""
    depths = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGB_ALPHA: (8, 16)}
    names = {GREY: "grey", RGB: "rgb", PALETTE: "palette", GREY_ALPHA: "grey_alpha", RGB_ALPHA: "rgb_alpha"}
    for colour, all_depths in depths.items():
        for depth in all_depths:
            for trns in (False, True):
                if trns and colour in (GREY_ALPHA, RGB_ALPHA):
                    continue
                for interlaced in (False, True):
                    pixels = rng.integers(0, 2**depth, (HEIGHT, WIDTH, SAMPLES[colour]))
                    extra, palette, key = b"", None, None
                    if colour == PALETTE:
                        n = 2**depth if depth < 8 else 200
                        pixels %= n
                        palette = [tuple(int(v) for v in rng.integers(0, 256, 3)) for _ in range(n)]
                        extra = chunk(b"PLTE", bytes(v for p in palette for v in p))
                        if trns:
                            alphas = [int(v) for v in rng.integers(0, 256, n // 2)]
                            extra += chunk(b"tRNS", bytes(alphas))
                            palette = [p + (alphas[i],) if i < len(alphas) else p for i, p in enumerate(palette)]
                    elif trns:
                        key = [int(v) for v in pixels[2, 3]]
                        extra = chunk(b"tRNS", struct.pack(f">{len(key)}H", *key))
                    if interlaced:  # must not change anything
                        extra = chunk(b"gAMA", struct.pack(">I", 100000)) + extra
                    name = names[colour] + str(depth) + ("_trns" if trns else "") + ("_adam7" if interlaced else "")
                    data = encode(pixels, colour, depth, interlaced, extra)
                    rgb = to_colour(pixels, colour, depth, palette, key)
                    check(name, data, rgb, depth)
                    yield name, data, rgb, 1 if colour in (GREY, GREY_ALPHA) else 3


def check(name, data, rgb, depth):
    """Pillow reads 8-bit files alike."""
    if depth == 16 or "_trns" in name and "palette" not in name:
        return
    rgba = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"), np.float64) / 255
    assert np.abs(rgba[..., :3] * rgba[..., 3:] - rgb).max() < 1e-6, name


def damaged(good):
    """Yields name, bytes of files that must be refused."""
    size = np.zeros((1, 1, 1), int)
    yield "bad_empty", b""
    yield "bad_text", b"Not an image, only a note.\n"
    yield "bad_jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    yield "bad_signature_only", good[:8]
    yield "bad_header_cut", good[:20]
    yield "bad_header_crc", good[:20] + bytes([good[20] ^ 1]) + good[21:]
    yield "bad_data_cut", good[:60]
    yield "bad_data_crc", good[:50] + bytes([good[50] ^ 1]) + good[51:]
    yield "bad_no_end", good[:-12]
    yield "bad_huge", encode(size, GREY, 8, size=(100000, 100000))
    yield "bad_lie", encode(size, RGB, 8, size=(16000, 16000))
    yield "bad_zero_width", encode(size, GREY, 8, size=(4, 0))
    yield "bad_too_few_rows", encode(size, GREY, 8, size=(4, 1))
    yield "bad_no_palette", encode(size, PALETTE, 8)


def floats(values):
    flat = [format(np.float32(v), ".8f") + "f" for v in np.asarray(values).reshape(-1)]
    return ",\n        ".join(", ".join(flat[i : i + 7]) for i in range(0, len(flat), 7))


def main():
    rng = np.random.default_rng(20)
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*"):
        old.unlink()
    lines = ["/* Made by tests/record/images.py. */", f"#define KIND_HEIGHT {HEIGHT}", f"#define KIND_WIDTH {WIDTH}",
             "static const struct {", "    const char *name;", "    int channels; /* of the file */",
             "    float rgb[KIND_HEIGHT * KIND_WIDTH * 3];", "} kinds[] = {"]
    for name, data, rgb, channels in kinds(rng):
        (OUT / f"{name}.png").write_bytes(data)
        lines.append(f'    {{ "{name}", {channels}, {{ {floats(rgb)} }} }},')
        if name == "rgb8":
            good = data
    lines.append("};")
    for name, data in damaged(good):
        (OUT / f"{name}.png").write_bytes(data)

    source = rng.random((9, 11, 3)).astype(np.float32)
    lines += ["/* Scaled by torch's interpolate, bilinear with antialias, as torchvision does it. */",
              "#define SCALE_HEIGHT 9", "#define SCALE_WIDTH 11",
              f"static const float scale_source[] = {{ {floats(source)} }};",
              "static const struct {", "    int height, width;", "    float values[20 * 16 * 3];", "} scaled[] = {"]
    image = torch.from_numpy(source).permute(2, 0, 1)[None]
    for height, width in ((9, 11), (4, 5), (20, 16), (3, 16), (18, 2), (1, 1), (8, 10)):
        result = torch.nn.functional.interpolate(image, (height, width), mode="bilinear", antialias=True)
        values = result[0].permute(1, 2, 0).numpy()
        pillow = np.stack([np.asarray(Image.fromarray(source[..., c]).resize((width, height), Image.BILINEAR))
                           for c in range(3)], -1)
        assert np.abs(values - pillow).max() < 1e-5
        lines.append(f"    {{ {height}, {width}, {{ {floats(values)} }} }},")
    lines.append("};")
    (OUT / "expected.h").write_text("\n".join(lines) + "\n")


main()
