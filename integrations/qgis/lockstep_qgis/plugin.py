"""The plugin: registers the provider, without a user interface of its own, so that qgis_process runs it too."""
from qgis.core import QgsApplication

from .provider import LockstepProvider


class LockstepPlugin:
    def __init__(self, iface):
        self.provider = None

    def initProcessing(self):  # noqa: N802
        self.provider = LockstepProvider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self):  # noqa: N802
        self.initProcessing()

    def unload(self):
        if self.provider is not None:
            QgsApplication.processingRegistry().removeProvider(self.provider)
            self.provider = None
