"""A vLLM and a torch that have the names the probe takes hold of, and behave alike where it does; numpy computes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

__all__ = ["Fake", "Router", "Runner", "Tensor", "install"]

DEVICE = SimpleNamespace(type="cpu")


class Tensor:
    """An array with the methods of a tensor that the probe calls."""

    def __init__(self, array: Any, dtype: str = "") -> None:
        self.array = np.asarray(array)
        self.dtype = f"torch.{dtype or self.array.dtype}"
        self.device = DEVICE
        self.shape = self.array.shape

    def __ge__(self, other: Any) -> Tensor:
        return Tensor(self.array >= _array(other))

    def __lt__(self, other: Any) -> Tensor:
        return Tensor(self.array < _array(other))

    def __and__(self, other: Any) -> Tensor:
        return Tensor(self.array & _array(other))

    def __add__(self, other: Any) -> Tensor:
        return Tensor(self.array + _array(other))

    def __mul__(self, other: Any) -> Tensor:
        return Tensor(self.array * _array(other))

    def __getitem__(self, rows: Any) -> Tensor:
        return Tensor(self.array[rows])

    def to(self, dtype: Any) -> Tensor:
        """Return a copy of another type."""
        return Tensor(self.array.astype(dtype))

    def unsqueeze(self, axis: int) -> Tensor:
        """Return a view with one axis more."""
        return Tensor(np.expand_dims(self.array, axis))

    def reshape(self, *shape: int) -> Tensor:
        """Return the elements in another shape."""
        return Tensor(self.array.reshape(*shape), self.dtype.removeprefix("torch."))

    def view(self, dtype: Any) -> Tensor:
        """Return the bytes as another type."""
        return Tensor(self.array.view(dtype))

    def fill_(self, value: int) -> None:
        """Set all elements."""
        self.array[...] = value

    def scatter_add_(self, axis: int, places: Tensor, values: Tensor) -> None:
        """Add values at places."""
        assert axis == 0
        np.add.at(self.array, places.array, values.array)

    def detach(self) -> Tensor:
        """Return itself."""
        return self

    cpu = contiguous = detach

    def numpy(self) -> Any:
        """Return the array."""
        return self.array

    def tolist(self) -> Any:
        """Return lists of numbers."""
        return self.array.tolist()

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.array.size)

    def untyped_storage(self) -> Any:
        """Return where the elements lie."""
        return SimpleNamespace(data_ptr=lambda: id(self.array), nbytes=lambda: self.array.nbytes)


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value


def _torch() -> ModuleType:
    torch: Any = ModuleType("torch")
    torch.int64, torch.uint8 = np.int64, np.uint8
    torch.zeros = lambda *shape, dtype=np.float32, device=None: Tensor(np.zeros(shape, dtype))
    torch.cat = lambda tensors: Tensor(np.concatenate([tensor.array for tensor in tensors]))
    torch.arange = lambda stop, device=None: Tensor(np.arange(stop))
    torch.where = lambda condition, left, right: Tensor(np.where(condition.array, _array(left), _array(right)))
    torch.full_like = lambda tensor, value: Tensor(np.full_like(tensor.array, value))
    torch.ones_like = lambda tensor: Tensor(np.ones_like(tensor.array))
    return torch  # type: ignore[no-any-return]


class Router:
    """A router as vLLM's ``BaseRouter`` is."""

    def __init__(self, top_k: int, experts: int, *, silent: bool = False) -> None:
        self.top_k, self.global_num_experts, self.silent = top_k, experts, silent
        self.capture_fn: Callable[[Any], None] | None = None

    def set_capture_fn(self, capture_fn: Callable[[Any], None] | None) -> None:
        """Set the callback, whatever there was."""
        self.capture_fn = capture_fn

    def select(self, ids: Any) -> None:
        """Route a batch."""
        if self.capture_fn is not None and not self.silent:
            self.capture_fn(Tensor(ids))


class Runner:
    """A layer as vLLM's ``MoERunner`` is; a monolithic one routes in its kernel."""

    def __init__(self, name: str, router: Any, kernel: Any = None) -> None:
        self.layer_name, self.router = name, router
        method = SimpleNamespace(
            is_monolithic=kernel is not None, moe_kernel=SimpleNamespace(impl=SimpleNamespace(fused_experts=kernel))
        )
        self.routed_experts = SimpleNamespace(quant_method=method, routing_sink=None)

    def modules(self) -> list[Any]:
        """Return the modules below and itself."""
        return [self]


class Sink:
    """vLLM's ``RoutedExpertsSink``."""

    def __init__(self, moe_config: Any, capture_fn: Any) -> None:
        self.capture_fn = capture_fn


class Model:
    """A model of layers."""

    def __init__(self, layers: Iterable[Any]) -> None:
        self._layers = list(layers)

    def modules(self) -> list[Any]:
        """Return its layers."""
        return self._layers

    def parameters(self) -> list[Tensor]:
        """Return one parameter, and one that a kernel has emptied."""
        return [Tensor(np.zeros(100, np.float32)), Tensor(np.zeros(0, np.float32))]

    def buffers(self) -> list[Tensor]:
        """Return no buffer."""
        return []


class Fake:
    """The engine: its weights, its layers, and its one worker."""

    def __init__(self) -> None:
        self.weights: list[tuple[str, Any]] = [("a", Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))]
        self.layers: list[Any] = [Runner(f"model.layers.{at}.mlp.experts", Router(2, 4)) for at in range(2)]
        self.registered: dict[str, Any] = {}
        self.parallel: Any = SimpleNamespace()
        self.warm_up = [[0, 1]] * 8
        self.dummy = [[0, 2]]
        self.routed: list[Any] = []
        self.bypass = False
        self.worker: Any = None
        self.modules: dict[str, Any] = {}

    @property
    def iterator(self) -> Callable[..., Iterator[Any]]:
        """Return the iterator that the loader would call now."""
        found: Callable[..., Iterator[Any]] = self.modules[
            "vllm.model_executor.model_loader.default_loader"
        ].safetensors_weights_iterator
        return found

    def start(self) -> None:
        """Construct the worker, load, warm up."""
        self.worker = self.modules["vllm.v1.worker.worker_base"].FakeWorker(self)
        self.worker.load_model()
        self.worker.compile_or_warm_up_model()

    def step(self, ids: list[list[int]], tokens: int) -> None:
        """Run a step of some tokens; rows beyond them are padding."""
        self.routed = ids
        self.worker.execute_model(SimpleNamespace(total_num_scheduled_tokens=tokens))

    def route(self, ids: list[list[int]]) -> None:
        """Route a batch in every layer."""
        for layer in [*self.layers, *self.registered.values()]:
            sink = layer.routed_experts.routing_sink
            if sink is not None:
                sink.capture_fn(Tensor(np.asarray(ids)))
            else:
                layer.router.select(np.asarray(ids))


def _worker(base: type) -> type:
    class FakeWorker(base):  # type: ignore[misc]
        def load_model(self) -> None:
            if not self.fake.bypass:
                loaded = list(self.fake.iterator(["/models/m/model.safetensors"], True))
                assert loaded == self.fake.weights
            self.model_runner.model = Model(self.fake.layers)

        def compile_or_warm_up_model(self) -> None:
            self.fake.route(self.fake.warm_up)

        def execute_model(self, scheduler_output: Any) -> str:
            self.fake.route(self.fake.routed)
            return "output"

        def execute_dummy_batch(self) -> None:
            self.fake.route(self.fake.dummy)

        def shutdown(self) -> None:
            self.fake.worker = None

    return FakeWorker


def install(monkeypatch: pytest.MonkeyPatch, version: str = "0.32.0") -> Fake:
    """Put the modules where imports find them, for one test; return the engine behind them."""
    fake = Fake()

    def read(files: list[str], use_tqdm: bool) -> Iterator[tuple[str, Any]]:
        yield from fake.weights

    def construct(self: Any, engine: Fake) -> None:
        self.fake, self.rank, self.device = engine, 0, DEVICE
        self.load_config = SimpleNamespace(load_format="auto")
        self.parallel_config = engine.parallel
        self.compilation_config = SimpleNamespace(static_forward_context=engine.registered)
        runner = SimpleNamespace(model=None, kv_caches=[Tensor(np.zeros(7, np.int64))])
        runner.get_model = lambda: runner.model
        self.model_runner = runner

    base = type("WorkerBase", (), {"__init__": construct})
    context = SimpleNamespace(dp_metadata=None)
    contents: dict[str, dict[str, Any]] = {
        "torch": vars(_torch()),
        "vllm": {"__path__": []},
        "vllm.version": {"__version__": version},
        "vllm.envs": {},
        "vllm.forward_context": {"get_forward_context": lambda: context, "context": context},
        "vllm.distributed": {"__path__": []},
        "vllm.distributed.parallel_state": {"get_tp_group": lambda: SimpleNamespace(rank_in_group=1, world_size=2)},
        "vllm.model_executor": {"__path__": []},
        "vllm.model_executor.model_loader": {"__path__": [], "_LOAD_FORMAT_TO_MODEL_LOADER": {"auto": Fake}},
        "vllm.model_executor.model_loader.default_loader": {"safetensors_weights_iterator": read},
        "vllm.model_executor.layers": {"__path__": []},
        "vllm.model_executor.layers.fused_moe": {"__path__": []},
        "vllm.model_executor.layers.fused_moe.router": {"__path__": []},
        "vllm.model_executor.layers.fused_moe.router.base_router": {"BaseRouter": Router},
        "vllm.model_executor.layers.fused_moe.routed_experts_capturer": {"RoutedExpertsSink": Sink},
        "vllm.v1": {"__path__": []},
        "vllm.v1.worker": {"__path__": []},
        "vllm.v1.worker.worker_base": {"WorkerBase": base, "FakeWorker": _worker(base)},
    }
    for name, members in contents.items():
        module = ModuleType(name)
        vars(module).update({key: value for key, value in members.items() if key != "__name__"})
        fake.modules[name] = module
        monkeypatch.setitem(__import__("sys").modules, name, module)
    return fake


def digest(array: Any) -> str:
    """Return SHA-256 of an array's bytes, computed beside the probe."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
