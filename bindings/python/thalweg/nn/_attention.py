# _attention.py: attention with several heads.
from __future__ import annotations

import math

import thalweg as tw
from thalweg import _C
from thalweg._typing import DTypeLike, Tensor
from thalweg.nn._layers import Linear
from thalweg.nn._module import Module


class MultiheadAttention(Module):
    """Attention of num_heads heads over projections of query, key and value. Vaswani et al., Attention is
    all you need (NeurIPS 2017), section 3.2.2.

    query: (N, L, embed_dim); key and value: (N, S, embed_dim), the query by default; the result is
    (N, L, embed_dim). attn_mask and is_causal as in scaled_dot_product_attention. In training a share of
    `dropout` of the weights is dropped. Raises ValueError where the heads do not divide embed_dim.

    >>> attention = tw.nn.MultiheadAttention(8, 2)
    >>> attention(tw.ones((1, 5, 8)), is_causal=True).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise _C.ValueError(f"MultiheadAttention: {num_heads} heads do not divide embed_dim {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.query = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.key = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.value = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.output = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        result = tw.scaled_dot_product_attention(
            self._heads(self.query(query)),
            self._heads(self.key(key)),
            self._heads(self.value(value)),
            attn_mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
        )
        joined = tw.permute_dims(result, (0, 2, 1, 3))
        return self.output(tw.reshape(joined, (*joined.shape[:2], math.prod(joined.shape[2:]))))

    def _heads(self, x: Tensor) -> Tensor:
        """(N, L, embed_dim) to (N, heads, L, embed_dim / heads)."""
        if x.ndim != 3:
            raise _C.ShapeError(f"MultiheadAttention: takes (N, L, embed_dim), not the shape {x.shape}")
        split = tw.reshape(x, (*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads))
        return tw.permute_dims(split, (0, 2, 1, 3))

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}"
