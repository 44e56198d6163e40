"""Lockstep's commands for cities as algorithms of QGIS Processing."""


def classFactory(iface):  # noqa: N802 (QGIS calls it by this name)
    from .plugin import LockstepPlugin

    return LockstepPlugin(iface)
