# thalweg.nn: modules with parameters, in the way of torch.nn.
"""Layers and their containers. A Module finds its parameters by its attributes; functions without state are
in thalweg itself (conv2d, softmax, cross_entropy, ...)."""

from thalweg.nn._attention import MultiheadAttention
from thalweg.nn._layers import (
    GELU,
    BatchNorm2d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    Linear,
    ReLU,
    Sigmoid,
    SiLU,
    Tanh,
)
from thalweg.nn._module import Module, ModuleList, Parameter, Sequential
from thalweg.nn._safetensors import load_safetensors, save_safetensors

__all__ = [
    "GELU",
    "BatchNorm2d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Tanh",
    "load_safetensors",
    "save_safetensors",
]
