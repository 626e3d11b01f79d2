# thalweg.utils: what PyTorch's users look for here.
"""Names of thalweg.autograd where PyTorch has them."""

from thalweg.utils import checkpoint

__all__ = ["checkpoint"]
