"""The layers that route: where their selections can be seen, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moeplan_vllm_probe.faults import ProbeFault
from moeplan_vllm_probe.hooks import find, require

__all__ = ["RoutedLayer", "routed_layers"]

_FUSED = "vllm.model_executor.layers.fused_moe"
_DROPLESS = {
    "AiterSharedRoutedFusedMoERouter",
    "CPURouter",
    "CustomRoutingRouter",
    "FusedTopKBiasRouter",
    "FusedTopKRouter",
    "GroupedTopKRouter",
}
"""Routers behind which every selected expert computes. Source: vLLM 0.32.0, ``layers/fused_moe``: no capacity factor,
no token is dropped. Not ZeroExpertRouter, whose zero experts compute nothing."""


@dataclass(frozen=True)
class RoutedLayer:
    """One layer with a router.

    Attributes:
        name: the engine's name of it.
        draft: whether it belongs to a drafter of speculative decoding.
        experts: how many logical experts it chooses from.
        top_k: how many it chooses for a token.
        router: class of what routes.
        via: where the selections are seen: ``capture_fn``, ``routing_sink`` or ``module``.
        slot: what holds the callback.
        dropless: whether every selection is known to be computed.
        hash_routed: whether the token alone decides, not its hidden state.
    """

    name: str
    draft: bool
    experts: int
    top_k: int
    router: str
    via: str
    slot: Any
    dropless: bool
    hash_routed: bool

    def as_json(self) -> dict[str, Any]:
        """Return the layer as the header has it."""
        dropped = {"count": 0, "basis": "dropless kernels: no capacity factor"} if self.dropless else None
        return {
            "name": self.name,
            "draft": self.draft,
            "experts": self.experts,
            "topK": self.top_k,
            "router": self.router,
            "via": self.via,
            "hashRouted": self.hash_routed,
            "padding": "counted" if self.draft else "excluded",
            "dropped": dropped,
        }

    def chain(self, count: Callable[[Any], None]) -> None:
        """Have ``count`` called with the selected ids, beside what is called already and whatever is set later."""
        if self.via == "capture_fn":
            _chain_router(self.slot, count)
        else:
            self.slot.capture_fn = _both(self.slot.capture_fn, count)

    def calls(self, count: Callable[[Any], None]) -> bool:
        """Return whether ``count`` is still called with the selected ids."""
        current = self.slot.capture_fn
        return current is count or getattr(current, "moeplan_count", None) is count


def routed_layers(model: Any, registered: dict[str, Any]) -> list[RoutedLayer]:
    """Return every routed layer: the model's, then those the engine registered for another model, the drafter.

    Args:
        model: the model that was loaded.
        registered: layers by name as the engine's forward context has them.

    Raises:
        ProbeFault: a layer routes where no hook sees it.
    """
    own = list(model.modules())
    known = {id(module) for module in own}
    others = [module for layer in registered.values() if hasattr(layer, "modules") for module in layer.modules()]
    found = [*_found(own, False), *_found([module for module in others if id(module) not in known], True)]
    return list({id(layer.slot): layer for layer in reversed(found)}.values())[::-1]


def _found(modules: list[Any], draft: bool) -> Iterator[RoutedLayer]:
    base = require(f"{_FUSED}.router.base_router", "BaseRouter")
    for module in modules:
        router = getattr(module, "router", None)
        if getattr(module, "routed_experts", None) is not None and router is not None:
            yield _runner(module, router, base, draft)
        elif isinstance(router, base):
            yield _layer(module, draft, router, "capture_fn", router)
        elif hasattr(module, "layer_id") and "capture_fn" in vars(module):
            yield _layer(module, draft, module, "module", module)


def _runner(module: Any, router: Any, base: Any, draft: bool) -> RoutedLayer:
    """Return the layer of a runner, which asks its router or leaves the routing to a monolithic kernel."""
    method = getattr(module.routed_experts, "quant_method", None)
    if getattr(method, "is_monolithic", False):
        return _layer(module, draft, router, "routing_sink", _sink(module, method))
    if not isinstance(router, base):
        raise _unseen(module, f"router {type(router).__name__} has no callback")
    return _layer(module, draft, router, "capture_fn", router)


def _sink(module: Any, method: Any) -> Any:
    """Return the sink of a monolithic kernel; it is made here where the engine made none.

    Source: vLLM 0.32.0, ``fused_moe/routed_experts_capturer.py``, ``bind_routed_experts_capturer``.
    """
    sink_class = find(f"{_FUSED}.routed_experts_capturer", "RoutedExpertsSink")
    kernel: Any = getattr(getattr(getattr(method, "moe_kernel", None), "impl", None), "fused_experts", None)
    replays = getattr(kernel, "supports_routing_replay_capture", None)
    if sink_class is None or replays is None or not replays():
        raise _unseen(module, f"monolithic kernel {type(kernel).__name__} routes inside and hands out no ids")
    if getattr(module.routed_experts, "routing_sink", None) is None:
        module.routed_experts.routing_sink = sink_class(kernel.moe_config, None)
    return module.routed_experts.routing_sink


def _unseen(module: Any, why: str) -> ProbeFault:
    return ProbeFault(
        "router_bypasses_hook",
        f"layer {_name(module)}: {why}",
        "choose another --moe-backend, or set MOEPLAN_PROBE_LENIENT=1 to go on without counts",
    )


def _layer(module: Any, draft: bool, router: Any, via: str, slot: Any) -> RoutedLayer:
    experts, top_k = _first(router, "global_num_experts", "num_logical_experts", "num_experts"), _first(router, "top_k")
    if not experts or not top_k:
        raise _unseen(module, f"{type(router).__name__} does not say how many experts it chooses from")
    return RoutedLayer(
        name=_name(module),
        draft=draft,
        experts=experts,
        top_k=top_k,
        router=type(router).__name__,
        via=via,
        slot=slot,
        dropless=type(router).__name__ in _DROPLESS,
        hash_routed=any(
            getattr(router, name, None) is not None for name in ("_hash_indices_table", "hash_indices_table")
        ),
    )


def _name(module: Any) -> str:
    return str(getattr(module, "layer_name", None) or getattr(module, "prefix", None) or type(module).__name__)


def _first(router: Any, *names: str) -> int:
    return next((int(value) for name in names if isinstance(value := getattr(router, name, None), int)), 0)


def _chain_router(router: Any, count: Callable[[Any], None]) -> None:
    """Set the callback of a router, and see to it that a later one is called beside it, not instead of it."""

    def set_capture_fn(capture_fn: Callable[[Any], None] | None) -> None:
        router.capture_fn = _both(capture_fn, count)

    set_capture_fn(router.capture_fn)
    router.set_capture_fn = set_capture_fn


def _both(first: Callable[[Any], None] | None, count: Callable[[Any], None]) -> Callable[[Any], None]:
    if first is None:
        return count

    def capture(ids: Any) -> None:
        first(ids)
        count(ids)

    capture.moeplan_count = count  # type: ignore[attr-defined]
    return capture
