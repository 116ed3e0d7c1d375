"""(runtime, vendor, profile) selects exactly one plugin."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.hooks.host import InstalledPlugin
from moeplan.model.plugin import Profile

__all__ = ["Selection", "select_plugin"]


@attrs.frozen
class Selection:
    """The plugin, and the profile where one was asked for."""

    plugin: InstalledPlugin
    profile: Profile | None


def select_plugin(
    plugins: Sequence[InstalledPlugin], runtime: str, vendor: str | None = None, profile: str | None = None
) -> Selection:
    """Return the one plugin that fits.

    Args:
        plugins: those of a host.
        runtime: the engine (``vllm``) or a plugin's name (``vllm-cuda``), which says more.
        vendor: of the accelerators; None where the rest tells enough.
        profile: id of a profile; None selects a plugin alone.

    Raises:
        InputError: none fits (with what was probably meant), or several do.
    """
    left = [p for p in plugins if p.name == runtime] or [p for p in plugins if p.info.engine == runtime]
    if not left:
        known = {p.info.engine for p in plugins} | {p.name for p in plugins}
        raise _unknown("runtime", runtime, known, "no installed plugin is for this runtime")
    if vendor is not None:
        known = {p.info.vendor for p in left}
        left = [p for p in left if p.info.vendor == vendor]
        if not left:
            raise _unknown("vendor", vendor, known, f"no plugin for {escape(runtime, 60)} is for this vendor")
    if profile is not None:
        known = {one.id for p in left for one in p.info.profiles}
        left = [p for p in left if _profile(p, profile) is not None]
        if not left:
            raise _unknown("profile", profile, known, f"no plugin for {escape(runtime, 60)} has this profile")
    if len(left) > 1:
        names = ", ".join(p.name for p in left)
        step = "name the plugin as the runtime, or give the vendor"
        raise InputError(Issue("runtime", "ambiguous_plugin", "several plugins fit", "exactly one", names, step))
    return Selection(left[0], _profile(left[0], profile))


def _profile(plugin: InstalledPlugin, wanted: str | None) -> Profile | None:
    return next((one for one in plugin.info.profiles if one.id == wanted), None)


def _unknown(path: str, got: str, known: Collection[str], message: str) -> InputError:
    from difflib import get_close_matches

    near = get_close_matches(got, known, 1)
    step = f"did you mean {near[0]!r}?" if near else "see 'moeplan profiles'"
    wanted = f"one of {', '.join(sorted(known))}" if known else "an installed plugin; none is"
    return InputError(Issue(path, f"unknown_{path}", message, escape(wanted, 400), repr(escape(got, 60)), step))
