# _optimizers.py: SGD, Adam and AdamW.
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import thalweg as tw
from thalweg import _C
from thalweg._typing import Tensor


class Optimizer:
    """The base: groups of parameters with their options, and the state of each parameter.

    params: the parameters, or dicts {"params": parameters, option: value} for options that differ. A subclass
    defines _update, and _check for limits of its options. `param_groups` is a list of such dicts, whose
    options (lr among them) may be changed; `state` maps each parameter that has made a step to what is kept
    of it. Copies and pickles have parameters and state of their own.

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
        name = type(self).__name__
        self.param_groups: list[dict[str, Any]] = []
        # Tensors are compared as keys by identity: their hashes are those of objects.
        self.state: dict[Tensor, dict[str, Any]] = {}
        seen: set[int] = set()
        for group in _groups(name, params):
            parameters = _parameters(name, group)
            for parameter in parameters:
                if id(parameter) in seen:
                    raise _C.ValueError(f"{name}: a parameter was given twice")
                seen.add(id(parameter))
            unknown = set(group) - set(defaults) - {"params"}
            if unknown:
                raise _C.ValueError(f"{name}: no option is called {min(unknown, key=str)!r}")
            options = {**defaults, **group}
            self._check(options)
            self.param_groups.append({**options, "params": parameters})
        if not seen:
            raise _C.ValueError(f"{name}: there is no parameter")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes every parameter that has a gradient. Does not wait.

        closure: computes the loss anew, with its gradients, before that; recorded even under no_grad. Returns
        what it returned, None without one. Raises DTypeError for one that cannot be called."""
        loss = None
        if closure is not None:
            if not callable(closure):
                raise _C.DTypeError(f"step: closure must be a function, not {type(closure).__name__}")
            with tw.enable_grad():
                loss = closure()
        with tw.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is not None:
                        state = self.state.setdefault(parameter, {})
                        self._update(parameter, gradient.detach(), state, group)
        return loss

    def zero_grad(self) -> None:
        """Sets the gradients to None, so that the next backward begins anew."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        """The state by the number of the parameter, and the options of the groups."""
        order = self._order()
        number = {id(parameter): i for i, parameter in enumerate(order)}
        groups = [
            {**group, "params": [number[id(parameter)] for parameter in group["params"]]}
            for group in self.param_groups
        ]
        state = {
            i: dict(self.state[parameter]) for i, parameter in enumerate(order) if parameter in self.state
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes over what state_dict of such an optimiser returned; tensors are brought to the devices of the
        parameters. Raises, before anything is changed, ValueError where the numbers of parameters differ and
        for options that are not known, and DTypeError for what is no such state."""
        if not (isinstance(state, Mapping) and {"state", "param_groups"} <= set(state)):
            keys = f"a mapping with the keys {sorted(map(str, state))}" if isinstance(state, Mapping) else ""
            raise _C.DTypeError(
                "load_state_dict: state must be what state_dict() returns, a mapping with the keys 'state' "
                f"and 'param_groups', not {keys or type(state).__name__}"
            )
        groups, kept = state["param_groups"], state["state"]
        if not all(isinstance(group, Mapping) and "params" in group for group in groups):
            raise _C.DTypeError("load_state_dict: every group must be a mapping with the key 'params'")
        sizes = [len(group["params"]) for group in groups]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise _C.ValueError(f"load_state_dict: groups of {sizes} parameters, here {own}")
        merged = []
        for group, given in zip(self.param_groups, groups, strict=True):
            unknown = set(given) - set(group)
            if unknown:
                raise _C.ValueError(
                    f"load_state_dict: {type(self).__name__} has no option {min(unknown, key=str)!r}"
                )
            merged.append({**group, **given, "params": group["params"]})
            self._check(merged[-1])
        numbers = [number for group in groups for number in group["params"]]
        parameters = dict(zip(numbers, self._order(), strict=True))
        for number, value in kept.items():
            if number not in parameters:
                raise _C.ValueError(
                    f"load_state_dict: there is state of parameter {number!r}, which no group has; they have "
                    f"{numbers}"
                )
            if not isinstance(value, Mapping):
                raise _C.DTypeError(
                    f"load_state_dict: the state of parameter {number!r} must be a mapping, not "
                    f"{type(value).__name__}"
                )
        loaded = {
            parameters[number]: {
                name: each.to(parameters[number].device) if isinstance(each, Tensor) else each
                for name, each in value.items()
            }
            for number, value in kept.items()
        }
        for group, options in zip(self.param_groups, merged, strict=True):
            group.update(options)
        self.state = loaded

    def _order(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _check(self, group: dict[str, Any]) -> None:
        """Raises where an option is out of range."""

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        raise NotImplementedError


def _groups(name: str, params: Any) -> list[Mapping[str, Any]]:
    if isinstance(params, Tensor):
        raise _C.DTypeError(f"{name}: params must be several tensors, not one Tensor; pass a list of it")
    try:
        given = list(params)
    except TypeError:
        raise _C.DTypeError(f"{name}: params must be tensors or dicts, not {type(params).__name__}") from None
    if not (given and isinstance(given[0], Mapping)):
        return [{"params": given}]
    for group in given:
        if not isinstance(group, Mapping):
            raise _C.DTypeError(f"{name}: beside dicts, params has a {type(group).__name__}; make it a group")
        if "params" not in group:
            raise _C.ValueError(
                f"{name}: a group of parameters needs the key 'params', it has {sorted(group)}"
            )
    return given


def _parameters(name: str, group: Mapping[str, Any]) -> list[Tensor]:
    given = group["params"]
    parameters = [given] if isinstance(given, Tensor) else list(given)
    for parameter in parameters:
        if not isinstance(parameter, Tensor):
            raise _C.DTypeError(f"{name}: a parameter must be a Tensor, not {type(parameter).__name__}")
        if not parameter.is_leaf:
            raise _C.ValueError(
                f"{name}: a parameter of shape {parameter.shape} is no leaf but a "
                "result; pass what it was computed from, or its detach().requires_grad_()"
            )
    return parameters


def _require(name: str, option: str, value: Any, low: float = 0.0, high: float = math.inf) -> None:
    if isinstance(value, (str, Tensor)) or not hasattr(type(value), "__float__"):
        raise _C.DTypeError(f"{name}: {option} must be a number, not {type(value).__name__}")
    if not low <= value < high:
        limits = f"at least {low:g}" + ("" if high == math.inf else f" and below {high:g}")
        raise _C.ValueError(f"{name}: {option} is {value!r}; it must be {limits}")


class SGD(Optimizer):
    """Stochastic gradient descent: p -= lr * g, with g += weight_decay * p first.

    momentum: v = momentum * v + (1 - dampening) * g is used for g (the first v is g); nesterov: g + momentum
    * v. Raises ValueError for options out of range and DTypeError for those that are no numbers. Sutskever et
    al., On the importance of initialization and momentum in deep learning (ICML 2013).

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
        options = {"lr": lr, "momentum": momentum, "dampening": dampening}
        super().__init__(params, {**options, "weight_decay": weight_decay, "nesterov": nesterov})

    def _check(self, group: dict[str, Any]) -> None:
        for option in ("lr", "momentum", "weight_decay"):
            _require("SGD", option, group[option])
        _require("SGD", "dampening", group["dampening"], low=-math.inf)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise _C.ValueError("SGD: nesterov needs a momentum above 0 and no dampening")

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
    their start at 0. weight_decay is added to the gradient. Steps of float16 and bfloat16 are computed in
    float32 and rounded once. Raises ValueError for options out of range and DTypeError for those that are no
    numbers. Kingma and Ba, Adam (ICLR 2015).

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
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def _check(self, group: dict[str, Any]) -> None:
        name, betas = type(self).__name__, group["betas"]
        for option in ("lr", "eps", "weight_decay"):
            _require(name, option, group[option])
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise _C.ValueError(f"{name}: betas is {betas!r}; it must be a pair of numbers")
        for i, beta in enumerate(betas):
            _require(name, f"betas[{i}]", beta, high=1)

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        decay, (first, second) = group["weight_decay"], group["betas"]
        if gradient.dtype in ("float16", "bfloat16"):
            # Squares leave the range of float16 and eps vanishes in it; the state is float32.
            gradient = tw.astype(gradient, "float32")
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
