# checkpoint.py: thalweg.autograd's checkpoints, where PyTorch has them.
"""autograd.checkpoint and autograd.checkpoint_sequential."""

from thalweg.autograd import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
