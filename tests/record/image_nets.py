"""Record what torchvision says about its networks for images, small ones of the same structure, for
tests/unit/components/test_models.c: logits, and of one training step the loss, the gradients and the
running statistics. U-Net is written out here, with the names of github.com/milesial/Pytorch-UNet.

    python tests/record/image_nets.py        (needs torch, torchvision)

Writes tests/data/models/image_nets.txt; see models.py.
"""
import os
from functools import partial

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.models import convnext, efficientnet, mobilenetv3, resnet
from torchvision.models.segmentation import deeplabv3
from torchvision.models._utils import IntermediateLayerGetter

from models import HERE, record_net


def mobilenet(arch, width, classes):
    setting, last = mobilenetv3._mobilenet_v3_conf(f"mobilenet_v3_{arch}", width_mult=width)
    return mobilenetv3.MobileNetV3(setting, last, num_classes=classes, dropout=0.0)


def efficient(width, depth, classes, **options):
    setting, last = efficientnet._efficientnet_conf("efficientnet_b0", width_mult=width, depth_mult=depth)
    return efficientnet.EfficientNet(setting, 0.0, 0.0, classes, last_channel=last, **options)


def conv_next(depths, widths, classes):
    config = [convnext.CNBlockConfig(w, n, d) for w, n, d in zip(widths, widths[1:] + [None], depths)]
    return convnext.ConvNeXt(config, 0.0, num_classes=classes)


class Pixels(nn.Module):
    """A row of logits for each pixel, instead of a map."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        y = self.model(x)
        y = y["out"] if isinstance(y, dict) else y
        return y.permute(0, 2, 3, 1).flatten(0, 2)

    def state_dict(self, *args, **kwargs):
        return self.model.state_dict(*args, **kwargs)

    def named_parameters(self, *args, **kwargs):
        return self.model.named_parameters(*args, **kwargs)


def deeplab(width_per_group, width, rates, classes):
    net = resnet.ResNet(resnet.Bottleneck, [3, 4, 6, 3], width_per_group=width_per_group,
                        replace_stride_with_dilation=[False, True, True])
    backbone = IntermediateLayerGetter(net, {"layer4": "out"})
    head = nn.Sequential(deeplabv3.ASPP(2048, rates, width), nn.Conv2d(width, width, 3, padding=1, bias=False),
                         nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, classes, 1))
    head[0].project[3] = nn.Identity()  # no dropout
    return Pixels(deeplabv3.DeepLabV3(backbone, head))


class DoubleConv(nn.Module):
    def __init__(self, into, out, middle=None):
        super().__init__()
        middle = middle or out
        self.double_conv = nn.Sequential(
            nn.Conv2d(into, middle, 3, padding=1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(),
            nn.Conv2d(middle, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(into, out))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, into, out, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        else:
            self.up = nn.ConvTranspose2d(into, into // 2, 2, stride=2)
        self.conv = DoubleConv(into, out, into // 2 if bilinear else None)

    def forward(self, x, side):
        x = self.up(x)
        rows, columns = (side.size(i) - x.size(i) for i in (2, 3))
        x = F.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([side, x], 1))


class OutConv(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.conv = nn.Conv2d(into, out, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, channels, classes, width=64, levels=4, bilinear=False):
        super().__init__()
        factor, self.levels = 2 if bilinear else 1, levels
        self.inc = DoubleConv(channels, width)
        for i in range(levels):
            last = factor if i + 1 == levels else 1
            setattr(self, f"down{i + 1}", Down(width << i, 2 * (width << i) // last))
        for i in range(levels):
            below = width << (levels - i)
            setattr(self, f"up{i + 1}", Up(below, below // 2 // (1 if i + 1 == levels else factor), bilinear))
        self.outc = OutConv(width, classes)

    def forward(self, x):
        sides = [self.inc(x)]
        for i in range(self.levels):
            sides.append(getattr(self, f"down{i + 1}")(sides[-1]))
        x = sides.pop()
        for i in range(self.levels):
            x = getattr(self, f"up{i + 1}")(x, sides.pop())
        return self.outc(x)


def main():
    bottleneck = partial(resnet.ResNet, resnet.Bottleneck)
    norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
    with open(os.path.join(HERE, "image_nets.txt"), "w") as out:
        record = partial(record_net, out)
        record("resnet", "depth=50 groups=4 width_per_group=8 stem=large",
               bottleneck([3, 4, 6, 3], groups=4, width_per_group=8, num_classes=4), (2, 64, 64, 3), 4,
               train=False)
        record("resnet", "depth=101 width_per_group=6 stem=large",
               bottleneck([3, 4, 23, 3], width_per_group=6, num_classes=4), (2, 32, 48, 3), 4, train=False)
        record("resnet", "depth=152 width_per_group=4 stem=large",
               bottleneck([3, 8, 36, 3], width_per_group=4, num_classes=4), (2, 48, 32, 3), 4, train=False)
        record("convnext", "depths=[1,1,2,1] widths=[6,8,12,16] stochastic_depth=0",
               conv_next([1, 1, 2, 1], [6, 8, 12, 16], 5), (3, 64, 44, 3), 5)
        record("mobilenet_v3", "size=small width=0.25 dropout=0", mobilenet("small", 0.25, 5), (3, 96, 70, 3), 5)
        record("mobilenet_v3", "size=large width=0.25 dropout=0", mobilenet("large", 0.25, 4), (2, 80, 96, 3), 4)
        record("efficientnet", "width=0.25 depth=0.6 dropout=0 stochastic_depth=0",
               efficient(0.25, 0.6, 5), (3, 96, 80, 3), 5)
        record("efficientnet", "size=b5 width=0.3 depth=1.0 dropout=0 stochastic_depth=0",
               efficient(0.3, 1.0, 4, norm_layer=norm), (2, 64, 96, 3), 4)
        record("unet", "width=4 levels=3", Pixels(UNet(3, 3, 4, 3)), (2, 21, 30, 3), 3)
        record("unet", "width=4 levels=2 bilinear=true", Pixels(UNet(1, 4, 4, 2, True)), (2, 15, 12, 1), 4)
        record("deeplab_v3", "width_per_group=4 width=8 rates=[2,3,4] dropout=0", deeplab(4, 8, [2, 3, 4], 3),
               (2, 40, 33, 3), 3, train=False)
        record("transformer", "embed.patch_size=8 width=16 layers=2 heads=4 mlp_dim=24",
               torchvision.models.VisionTransformer(24, 8, 2, 4, 16, 24, num_classes=5), (3, 24, 24, 3), 5)


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
