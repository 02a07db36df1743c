"""Explanations of two small networks, and Grad-CAM of torchvision's architectures, by captum: what
tests/cli/run/test_explain_prediction.py compares with. Writes the weights of the small ones, images and captum's values to
tests/data/explanations/. Needs torch, torchvision, captum, safetensors and Pillow."""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from captum.attr import IntegratedGradients, LayerGradCam, Occlusion
from PIL import Image
from safetensors.torch import save_file
from torchvision.models import convnext, efficientnet, mobilenetv3, resnet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import patterned_weights

OUT = pathlib.Path(__file__).resolve().parents[1] / "data/explanations"
SIZE, CLASSES = 8, 3
PHOTO = 96
TEXT = "a warm joy"
# Of tokenizer/bytes, which has 3 special tokens and then the bytes in the order of GPT-2's.
VOCABULARY, IDS = 259, [67, 223, 89, 67, 84, 79, 223, 76, 81, 91]


class Cnn(torch.nn.Module):
    """model=cnn model.channels=[4,5] model.hidden=6 model.dropout=0 of RGB images."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(4)
        self.conv2 = torch.nn.Conv2d(4, 5, 3, padding=1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(5)
        self.pool2 = torch.nn.MaxPool2d(2)
        self.fc1 = torch.nn.Linear(SIZE // 4 * SIZE // 4 * 5, 6)
        self.fc2 = torch.nn.Linear(6, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = self.pool2(F.relu(self.bn2(self.conv2(x))))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class TextCnn(torch.nn.Module):
    """model=text_cnn model.width=4 model.kernels=[2,3] model.maps=3."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 4)
        self.convs = torch.nn.ModuleList(torch.nn.Conv1d(4, 3, k, padding=k - 1) for k in (2, 3))
        self.head = torch.nn.Linear(6, 2)

    def forward(self, vectors):
        x = vectors.transpose(1, 2)
        return self.head(torch.cat([F.relu(conv(x)).amax(2) for conv in self.convs], 1))


def image_values(net):
    image = (torch.randint(0, 256, (SIZE, SIZE, 3), generator=torch.Generator().manual_seed(3))).to(torch.uint8)
    Image.fromarray(image.numpy()).save(OUT / "image.png")
    x = (image.permute(2, 0, 1)[None] / 255.0).float()
    gradients, gap = IntegratedGradients(net).attribute(x, target=1, n_steps=50, return_convergence_delta=True)
    occlusion = Occlusion(net).attribute(x, target=1, sliding_window_shapes=(3, 4, 4), strides=(3, 2, 2))
    # The map before the last pooling is also a feature map; kiln takes the last one.
    cam = LayerGradCam(net, net.pool2).attribute(x, target=1, relu_attributions=True)
    logits = net(x)[0]
    return {
        "logits": logits.tolist(), "delta": float(gap[0]), "baseline": net(torch.zeros_like(x))[0, 1].item(),
        "integrated_gradients": gradients[0].permute(1, 2, 0).flatten().tolist(),
        "occlusion": occlusion[0, 0].flatten().tolist(), "grad_cam": cam[0, 0].flatten().tolist(),
    }


def architectures():
    """Options of kiln's model, torchvision's network, and the layer whose maps are pooled."""
    net = resnet.resnet18(num_classes=CLASSES)
    yield "resnet", ["model=resnet", "model.stem=large"], net, net.layer4
    net = convnext.ConvNeXt([convnext.CNBlockConfig(8, 8, 1), convnext.CNBlockConfig(8, 16, 1),
                             convnext.CNBlockConfig(16, 16, 1), convnext.CNBlockConfig(16, None, 1)], num_classes=CLASSES)
    yield "convnext", ["model=convnext", "model.depths=[1,1,1,1]", "model.widths=[8,8,16,16]"], net, net.features[-1]
    setting, last = mobilenetv3._mobilenet_v3_conf("mobilenet_v3_small", width_mult=0.1)
    net = mobilenetv3.MobileNetV3(setting, last, num_classes=CLASSES)
    yield "mobilenet_v3", ["model=mobilenet_v3", "model.width=0.1"], net, net.features[-1]
    setting, last = efficientnet._efficientnet_conf("efficientnet_b0", width_mult=0.1, depth_mult=0.1)
    net = efficientnet.EfficientNet(setting, dropout=0.0, num_classes=CLASSES, last_channel=last)
    yield "efficientnet", ["model=efficientnet", "model.width=0.1", "model.depth=0.1"], net, net.features[-1]


def photo():
    """Something between a plain area and noise, [height, width, channels] of 8 bits."""
    y, x = torch.meshgrid(torch.arange(PHOTO), torch.arange(PHOTO), indexing="ij")
    waves = [torch.sin(x / (7 + 3 * c)) * torch.cos(y / (11 - 2 * c)) for c in range(3)]
    blob = torch.exp(-((x - 60) ** 2 + (y - 30) ** 2) / 200)
    return ((torch.stack(waves, 2) * 60 + blob[..., None] * 60 + 128).round()).to(torch.uint8)


def architecture_values():
    image = photo()
    Image.fromarray(image.numpy()).save(OUT / "photo.png")
    x = (image.permute(2, 0, 1)[None] / 255.0).float()
    values = {}
    for name, options, net, layer in architectures():
        state = {key: torch.frombuffer(bytearray(patterned_weights.weights(key, tuple(value.shape))), dtype=torch.float32)
                 .reshape(value.shape) for key, value in net.state_dict().items() if value.dtype == torch.float32}
        net.load_state_dict(state, strict=False)
        net.eval()
        cams = [LayerGradCam(net, layer).attribute(x, target=k, relu_attributions=True) for k in range(CLASSES)]
        target = max(range(CLASSES), key=lambda k: cams[k].max())
        values[name] = {"options": options, "target": target, "score": net(x)[0, target].item(),
                        "shape": [*cams[target].shape[2:], 1], "grad_cam": cams[target].flatten().tolist()}
        assert cams[target].max() > 0, name
    return values


def text_values(net):
    ids = torch.tensor([IDS])
    vectors = net.embedding(ids).detach()
    gradients = IntegratedGradients(net).attribute(vectors, target=0, n_steps=50)
    return {"text": TEXT, "score": net(vectors)[0, 0].item(), "integrated_gradients": gradients[0].sum(1).tolist()}


def main():
    torch.manual_seed(1)
    OUT.mkdir(exist_ok=True)
    cnn, text = Cnn(), TextCnn()
    for norm in (cnn.bn1, cnn.bn2):
        norm.running_mean.uniform_(-0.3, 0.3)
        norm.running_var.uniform_(0.5, 1.5)
        torch.nn.init.uniform_(norm.bias, -0.2, 0.5)
    for net in (cnn, text):
        net.eval()
    values = {"image": image_values(cnn), "text": text_values(text), "architectures": architecture_values()}
    for net, name in ((cnn, "cnn"), (text, "text_cnn")):
        save_file({key: value.clone() for key, value in net.state_dict().items()}, OUT / f"{name}.safetensors")
    (OUT / "values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
