"""Load one plugin and call its hooks; whatever the plugin does becomes a result or a :class:`Fault`.

This runs in the plugin's process, or in the host's own where no deadline is asked for. The result is JSON values; it is
believed nowhere before the host has structured it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import attrs

from moeplan.errors import InputRefusedError, escape
from moeplan.hooks.faults import Fault
from moeplan.hooks.plain_data import may_be_none, read_arguments, shape_fault, thaw, write_arguments

__all__ = ["MAX_ITEMS", "LoadedPlugin", "load_plugin"]

MAX_ITEMS = 10_000
"""The most items one answer may have."""


@attrs.frozen
class LoadedPlugin:
    """A plugin that was loaded and whose hooks exist as it spells them."""

    name: str
    manager: Any = attrs.field(repr=False)
    hooks: tuple[str, ...]

    def call(self, hook: str, written: Mapping[str, Any]) -> Any:
        """Return the hook's result as JSON values.

        Args:
            hook: a hook of ``hooks``.
            written: the arguments as JSON values.

        Raises:
            Fault: whatever the plugin did wrong.
        """
        arguments = read_arguments(hook, written)
        try:
            # The manager knows this one plugin; pluggy drops None, so no result is None.
            results = getattr(self.manager.hook, hook)(**arguments)
        except InputRefusedError as error:
            raise Fault.refusing(error) from None
        except (Exception, SystemExit, GeneratorExit) as error:
            raise Fault.of("raised", "the hook", error) from None
        try:
            if write_arguments(arguments) != written:
                raise Fault("input_changed", "the hook changed its input")
            return _written(hook, results[0] if results else None)
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            # Values put into frozen objects by force: not JSON, a cycle, or objects that do something when looked at.
            raise Fault.of("malformed_result", "writing the result", error) from None


def _written(hook: str, result: Any) -> Any:
    if result is None:
        if may_be_none(hook):
            return None
        raise Fault("none_returned", "the hook returned None; nothing to say is an empty tuple")
    if type(result) is tuple and len(result) > MAX_ITEMS:
        raise Fault("too_large", f"the hook returned {len(result)} items; at most {MAX_ITEMS} are taken")
    wanted = shape_fault(hook, result)
    if wanted is not None:
        raise Fault("wrong_type", f"the hook returned {type(result).__name__}; expected {wanted}")
    return json.loads(json.dumps(thaw(result)))


def load_plugin(name: str, value: str) -> LoadedPlugin:
    """Import the plugin that an entry point names and check its API major and the spelling of its hooks.

    Raises:
        Fault: it cannot be imported, was written for another API, or has hooks that do not exist.
    """
    from moeplan.hooks import specs

    try:
        plugin = _object_of(value)
        api = getattr(plugin, "MOEPLAN_API", None)
    except (Exception, SystemExit, GeneratorExit) as error:
        raise Fault.of("import_failed", f"importing {escape(value, 100)}", error) from None
    if type(api) is not int or api != specs.API_MAJOR:
        got = "none" if api is None else repr(api) if type(api) is int else type(api).__name__
        raise Fault("api_mismatch", f"written for plugin API {got}; this moeplan has API {specs.API_MAJOR}")
    return LoadedPlugin(name, *_register(name, plugin))


def _object_of(value: str) -> Any:
    """Return what an entry point's value names: ``module``, ``module:object`` or ``module:object.attribute``.

    ``importlib.metadata`` does the same; importing it costs each plugin's process more than the plugin does.

    Source: Python Packaging User Guide, "Entry points specification", section "Data model".
    """
    module, _, path = value.partition("[")[0].partition(":")
    found: Any = import_module(module.strip())
    for attribute in path.strip().split(".") if path.strip() else ():
        found = getattr(found, attribute)
    return found


def _register(name: str, plugin: Any) -> tuple[Any, tuple[str, ...]]:
    import pluggy

    from moeplan.hooks import specs

    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    try:
        manager.register(plugin, name)
    except pluggy.PluginValidationError as error:
        raise Fault("wrong_signature", " ".join(str(error).split())) from None
    except (Exception, SystemExit, GeneratorExit) as error:
        raise Fault.of("import_failed", "registering it", error) from None
    marked = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    _check_spelling(manager, marked, plugin)
    if "moeplan_runtime" not in marked:
        raise Fault("missing_hook", "it does not implement moeplan_runtime, which every plugin does")
    return manager, tuple(hook for hook in specs.HOOKS if hook in marked)


def _check_spelling(manager: Any, marked: set[str], plugin: Any) -> None:
    from difflib import get_close_matches

    import pluggy

    from moeplan.hooks import specs

    try:
        manager.check_pending()
        unknown: set[str] = set()
    except pluggy.PluginValidationError:
        unknown = marked - set(specs.HOOKS)
    # pluggy ignores a function without the mark, however it is called.
    named = {attribute for attribute in dir(plugin) if attribute.startswith("moeplan_")}
    for hook in sorted(unknown | (named - marked - _imported(plugin, named))):
        if hook in specs.HOOKS:
            raise Fault("misspelt_hook", f"{hook} is not marked with @hookimpl and would never be called")
        near = get_close_matches(hook, specs.HOOKS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Fault("misspelt_hook", f"there is no hook {escape(hook, 100)}{hint}")


def _imported(plugin: Any, names: set[str]) -> set[str]:
    """Return the names that are no functions of the plugin: modules and values it imported or keeps."""
    return {name for name in names if not callable(getattr(plugin, name, None))}
