# _optimizers.py: SGD, Adam and AdamW.
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import thalweg as tw
from thalweg import _C
from thalweg._typing import Tensor


class Optimizer:
    """The base: groups of parameters with their options, and the state of each parameter.

    params: the parameters, or dicts {"params": parameters, option: value} for options that differ. A subclass
    defines _update. `param_groups` is a list of such dicts, whose options (lr among them) may be changed.
    Raises DTypeError for a parameter that is no tensor and ValueError for one that is no leaf, for none at
    all and for an option that is not known. PyTorch's optim.Optimizer.

    >>> class Descent(tw.optim.Optimizer):
    ...     def _update(self, parameter, gradient, state, group):
    ...         parameter -= gradient * group["lr"]
    >>> optimizer = Descent([tw.nn.Parameter(tw.ones(2))], {"lr": 0.1})
    >>> optimizer.param_groups[0]["lr"]
    0.1
    """

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        given = list(params)
        groups = given if given and isinstance(given[0], dict) else [{"params": given}]
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[int, dict[str, Any]] = {}
        seen: set[int] = set()
        for group in groups:
            parameters = list(group["params"])
            for parameter in parameters:
                if not isinstance(parameter, Tensor):
                    raise _C.DTypeError(
                        f"{type(self).__name__}: a parameter must be a Tensor, not {type(parameter).__name__}"
                    )
                if not parameter.is_leaf:
                    raise _C.ValueError(
                        f"{type(self).__name__}: a parameter of shape {parameter.shape} is no leaf but a "
                        "result; pass what it was computed from, or its detach().requires_grad_()"
                    )
                if id(parameter) in seen:
                    raise _C.ValueError(f"{type(self).__name__}: a parameter was given twice")
                seen.add(id(parameter))
            unknown = set(group) - set(defaults) - {"params"}
            if unknown:
                raise _C.ValueError(f"{type(self).__name__}: no option is called {sorted(unknown)[0]!r}")
            self.param_groups.append({**defaults, **group, "params": parameters})
        if not seen:
            raise _C.ValueError(f"{type(self).__name__}: there is no parameter")

    def step(self) -> None:
        """Changes every parameter that has a gradient. Does not wait."""
        with tw.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is not None:
                        state = self.state.setdefault(id(parameter), {})
                        self._update(parameter, gradient.detach(), state, group)

    def zero_grad(self) -> None:
        """Sets the gradients to None, so that the next backward begins anew."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        """The state by the number of the parameter, and the options of the groups."""
        order = [parameter for group in self.param_groups for parameter in group["params"]]
        number = {id(parameter): i for i, parameter in enumerate(order)}
        groups = [
            {**group, "params": [number[id(parameter)] for parameter in group["params"]]}
            for group in self.param_groups
        ]
        state = {number[key]: dict(value) for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes over what state_dict of such an optimiser returned. Raises ValueError where the numbers of
        parameters differ."""
        sizes = [len(group["params"]) for group in state["param_groups"]]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise _C.ValueError(f"load_state_dict: groups of {sizes} parameters, here {own}")
        order = [parameter for group in self.param_groups for parameter in group["params"]]
        for group, given in zip(self.param_groups, state["param_groups"], strict=True):
            group.update({name: value for name, value in given.items() if name != "params"})
        self.state = {id(order[number]): dict(value) for number, value in state["state"].items()}

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        raise NotImplementedError


def _check(name: str, option: str, value: float, low: float = 0.0, high: float = math.inf) -> None:
    if not low <= value < high:
        limits = f"at least {low:g}" + ("" if high == math.inf else f" and below {high:g}")
        raise _C.ValueError(f"{name}: {option} is {value!r}; it must be {limits}")


class SGD(Optimizer):
    """Stochastic gradient descent: p -= lr * g, with g += weight_decay * p first.

    momentum: v = momentum * v + (1 - dampening) * g is used for g (the first v is g); nesterov: g + momentum
    * v. Raises ValueError for options out of range. Sutskever et al., On the importance of initialization
    and momentum in deep learning (ICML 2013).

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> optimizer = tw.optim.SGD([weight], lr=0.5)
    >>> (weight * 2).sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        _check("SGD", "lr", lr)
        _check("SGD", "momentum", momentum)
        _check("SGD", "weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise _C.ValueError("SGD: nesterov needs a momentum above 0 and no dampening")
        options = {"lr": lr, "momentum": momentum, "dampening": dampening}
        super().__init__(params, {**options, "weight_decay": weight_decay, "nesterov": nesterov})

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"]:
            gradient = gradient + parameter * group["weight_decay"]
        if group["momentum"]:
            velocity = state.get("momentum")
            if velocity is None:
                velocity = gradient
            else:
                velocity = velocity * group["momentum"] + gradient * (1 - group["dampening"])
            state["momentum"] = velocity
            gradient = gradient + velocity * group["momentum"] if group["nesterov"] else velocity
        parameter -= gradient * group["lr"]


class Adam(Optimizer):
    """Adam: steps by the mean of gradients over the root of the mean of their squares, both corrected for
    their start at 0. weight_decay is added to the gradient. Raises ValueError for options out of range.
    Kingma and Ba, Adam (ICLR 2015).

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> optimizer = tw.optim.Adam([weight], lr=0.1)
    >>> (weight * 2).sum().backward()
    >>> optimizer.step()
    >>> round(weight.item(), 4)
    0.9
    """

    _decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        name = type(self).__name__
        _check(name, "lr", lr)
        _check(name, "betas[0]", betas[0], high=1)
        _check(name, "betas[1]", betas[1], high=1)
        _check(name, "eps", eps)
        _check(name, "weight_decay", weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        decay, (first, second) = group["weight_decay"], group["betas"]
        if decay and not self._decoupled:
            gradient = gradient + parameter * decay
        is_complex = tw.isdtype(gradient.dtype, "complex floating")
        squared = tw.square(tw.abs(gradient) if is_complex else gradient)
        if not state:
            state.update(step=0, mean=tw.zeros_like(gradient), square=tw.zeros_like(squared))
        state["step"] += 1
        state["mean"] = state["mean"] * first + gradient * (1 - first)
        state["square"] = state["square"] * second + squared * (1 - second)
        root = tw.sqrt(state["square"]) / math.sqrt(1 - second ** state["step"]) + group["eps"]
        step = group["lr"] / (1 - first ** state["step"])
        if decay and self._decoupled:
            parameter *= 1 - group["lr"] * decay
        parameter -= state["mean"] / root * step


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself, by lr * weight_decay. Raises ValueError for
    options out of range. Loshchilov and Hutter, Decoupled weight decay regularization (ICLR 2019).

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> optimizer = tw.optim.AdamW([weight], lr=0.1, weight_decay=0.5)
    >>> (weight * 2).sum().backward()
    >>> optimizer.step()
    >>> round(weight.item(), 4)
    0.85
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay)
