"""Record tests/data/image_ops.h: an image of 8 × 11 pixels after operations of torchvision, with fixed parameters.

    python3 tests/record/image_ops.py        needs torchvision

Values are in 1/65535."""

import pathlib

import numpy as np
import torch
import torchvision
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

OUT = pathlib.Path(__file__).parent.parent / "data" / "image_ops.h"
HEIGHT, WIDTH = 8, 11
BILINEAR, NEAREST, BICUBIC = InterpolationMode.BILINEAR, InterpolationMode.NEAREST, InterpolationMode.BICUBIC


def augment(name, magnitude):
    """An operation of RandAugment by its name."""
    policy = v2.RandAugment()
    return lambda image: policy._apply_image_or_video_transform(image, name, magnitude, NEAREST, {})


def perspective(image):
    return F.perspective(image, [[0, 0], [10, 0], [10, 7], [0, 7]], [[2, 1], [9, 0], [10, 6], [1, 7]], BILINEAR, fill=[0.25])


CASES = {
    "flip": F.horizontal_flip,
    "flip_vertical": F.vertical_flip,
    "affine_nearest": lambda x: F.affine(x, 25.0, [2, -1], 1.25, [10.0, -5.0], NEAREST, fill=[0.5]),
    "affine_bilinear": lambda x: F.affine(x, 25.0, [2, -1], 1.25, [10.0, -5.0], BILINEAR, fill=[0.5]),
    "affine_center": lambda x: F.affine(x, -70.0, [0, 0], 0.7, [0.0, 20.0], BILINEAR, center=[3.0, 2.0], fill=[0.0]),
    "rotate_bilinear": lambda x: F.rotate(x, 33.0, BILINEAR, fill=[1.0]),
    "perspective": perspective,
    "brightness": lambda x: F.adjust_brightness(x, 1.7),
    "contrast_less": lambda x: F.adjust_contrast(x, 0.4),
    "contrast_more": lambda x: F.adjust_contrast(x, 1.9),
    "saturation_less": lambda x: F.adjust_saturation(x, 0.3),
    "saturation_more": lambda x: F.adjust_saturation(x, 2.5),
    "hue_up": lambda x: F.adjust_hue(x, 0.31),
    "hue_down": lambda x: F.adjust_hue(x, -0.45),
    "grayscale": lambda x: F.rgb_to_grayscale(x, 3),
    "invert": F.invert,
    "solarize": lambda x: F.solarize(x, 0.6),
    "posterize": lambda x: F.posterize(x, 3),
    "autocontrast": lambda x: F.autocontrast(x * 0.5 + 0.2),
    "equalize": F.equalize,
    "sharper": lambda x: F.adjust_sharpness(x, 2.3),
    "softer": lambda x: F.adjust_sharpness(x, 0.2),
    "blur_3": lambda x: F.gaussian_blur(x, [3, 3], [0.7, 0.7]),
    "blur_7": lambda x: F.gaussian_blur(x, [7, 7], [2.1, 2.1]),
    "part_bilinear": lambda x: F.resized_crop(x, 1, 2, 6, 7, [4, 9], BILINEAR, antialias=True),
    "part_bicubic": lambda x: F.resized_crop(x, 0, 3, 8, 8, [5, 3], BICUBIC, antialias=True).clamp(0, 1),
    "part_bicubic_up": lambda x: F.resized_crop(x, 2, 0, 3, 11, [10, 13], BICUBIC, antialias=True).clamp(0, 1),
    "part_nearest": lambda x: F.resized_crop(x, 1, 1, 7, 9, [5, 12], NEAREST),
    "augment_shear_x": augment("ShearX", 0.28),
    "augment_shear_y": augment("ShearY", -0.4),
    "augment_translate_x": augment("TranslateX", 2.9),
    "augment_translate_y": augment("TranslateY", -1.6),
    "augment_rotate": augment("Rotate", 27.0),
    "augment_brightness": augment("Brightness", -0.35),
    "augment_color": augment("Color", 0.8),
    "augment_contrast": augment("Contrast", -0.6),
    "augment_sharpness": augment("Sharpness", 0.9),
    "augment_posterize": augment("Posterize", 2.0),
    "augment_solarize": augment("Solarize", 0.35),
    "augment_autocontrast": augment("AutoContrast", 0.0),
    "augment_equalize": augment("Equalize", 0.0),
}


def numbers(image):
    """Rows of pixels as C."""
    values = [str(int(v)) for v in (image.permute(1, 2, 0).double() * 65535 + 0.5).floor().reshape(-1)]
    return ",\n        ".join(", ".join(values[i : i + 18]) for i in range(0, len(values), 18))


def main():
    rng = np.random.default_rng(3)
    smooth = rng.random((3, HEIGHT, WIDTH))
    image = torch.from_numpy(np.round(smooth * 65535) / 65535).float()
    lines = [f"/* Made by tests/record/image_ops.py with torchvision {torchvision.__version__}. */",
             "#include <stdint.h>", "", f"#define IMAGE_HEIGHT {HEIGHT}", f"#define IMAGE_WIDTH {WIDTH}",
             f"static const uint16_t image_values[] = {{\n        {numbers(image)}\n}};",
             "static const struct {", "    const char *name;", "    int height, width;", "    uint16_t values[10 * 13 * 3];",
             "} image_ops[] = {"]
    for name, apply in CASES.items():
        result = apply(image.clone())
        lines.append(f'    {{ "{name}", {result.shape[1]}, {result.shape[2]}, {{\n        {numbers(result)} }} }},')
    lines.append("};")
    OUT.write_text("\n".join(lines) + "\n")


main()
