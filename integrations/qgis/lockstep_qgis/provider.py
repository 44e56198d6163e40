"""The provider: an algorithm for each command that the generated reference lists."""
from qgis.core import QgsProcessingProvider

from .algorithm import LockstepAlgorithm
from .command import COMMANDS


class LockstepProvider(QgsProcessingProvider):
    def loadAlgorithms(self):  # noqa: N802
        for command in COMMANDS:
            self.addAlgorithm(LockstepAlgorithm(command))

    def id(self):
        return "lockstep"

    def name(self):
        return "Lockstep"

    def longName(self):  # noqa: N802
        return "Lockstep urban"
