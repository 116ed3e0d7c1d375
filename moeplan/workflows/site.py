"""Begin a site: the plugin says what its profile needs, the template asks for it."""

from __future__ import annotations

from collections.abc import Collection

from moeplan.hooks.host import open_host
from moeplan.hooks.selection import select_plugin
from moeplan.site.template import site_template

__all__ = ["init_site"]


def init_site(
    runtime: str,
    profile: str,
    *,
    vendor: str | None = None,
    plugins: Collection[str] | None = None,
    schema: str | None = None,
) -> str:
    """Return a commented site file (YAML) with every value that only the site knows and the profile needs.

    Args:
        runtime: the engine or a plugin's name.
        profile: id of the profile.
        vendor: of the accelerators, where the rest does not tell.
        plugins: names of the only plugins to load; None loads all.
        schema: what the first line points an editor at; None points at the schema's id.

    Raises:
        InputError: no plugin, or several, have this profile.
        PluginError: the plugin asks for what a site does not have.
    """
    with open_host(plugins) as host:
        selected = select_plugin(host.plugins, runtime, vendor, profile)
    assert selected.profile is not None
    return site_template(selected.plugin.name, selected.profile, schema)
