"""A stand-in for qgis.core: the classes that the plugin uses, which keep what they are given."""
import sys
import types


class Parameter:
    FlagAdvanced = 2
    Integer, Double, Folder = 0, 1, 1

    def __init__(self, name, description, *rest, **options):
        self.name, self.description, self.rest, self.options = name, description, rest, options
        self.bounds, self._flags = {}, 0

    def flags(self):
        return self._flags

    def setFlags(self, flags):  # noqa: N802
        self._flags = flags

    def setMinimum(self, value):  # noqa: N802
        self.bounds["low"] = value

    def setMaximum(self, value):  # noqa: N802
        self.bounds["high"] = value


class Layer:
    def __init__(self, source):
        self._source = source

    def providerType(self):  # noqa: N802
        return "gdal"

    def crs(self):
        return self

    def isValid(self):  # noqa: N802
        return False

    def source(self):
        return self._source


class Algorithm:
    def __init__(self):
        self.parameters, self.outputs = {}, {}

    def addParameter(self, parameter):  # noqa: N802
        assert parameter.name not in self.parameters, parameter.name
        self.parameters[parameter.name] = parameter

    def addOutput(self, output):  # noqa: N802
        self.outputs[output.name] = output

    def parameterAsRasterLayer(self, parameters, name, context):  # noqa: N802
        return Layer(parameters[name])

    parameterAsVectorLayer = parameterAsRasterLayer

    def parameterAsCompatibleSourceLayerPathAndLayerName(self, parameters, name, *rest):  # noqa: N802
        path, _, layer = parameters[name].partition("|layername=")
        return path, layer

    def _text(self, parameters, name, context):
        return parameters[name]

    parameterAsString = parameterAsFileOutput = parameterAsBool = parameterAsInt = parameterAsDouble = _text


class Context:
    def __init__(self):
        self.layers = {}

    def project(self):
        return None

    def addLayerToLoadOnCompletion(self, path, details):  # noqa: N802
        self.layers[path] = details

    class LayerDetails:
        def __init__(self, name, project, output, hint):
            self.name, self.hint = name, hint


class Provider:
    def __init__(self):
        self.algorithms = []

    def addAlgorithm(self, algorithm):  # noqa: N802
        self.algorithms.append(algorithm)


class ProcessingError(Exception):
    pass


class Registry:
    def __init__(self):
        self.providers = []

    def addProvider(self, provider):  # noqa: N802
        self.providers.append(provider)
        provider.loadAlgorithms()

    def removeProvider(self, provider):  # noqa: N802
        self.providers.remove(provider)


def install():
    """Puts the stand-in where `import qgis.core` finds it; gives the registry of providers."""
    core = types.ModuleType("qgis.core")
    registry = Registry()
    core.QgsApplication = type("QgsApplication", (), {"processingRegistry": staticmethod(lambda: registry)})
    core.QgsProcessing = type("QgsProcessing", (), {"TypeVectorAnyGeometry": -1})
    core.QgsProcessingUtils = type("QgsProcessingUtils", (), {"LayerHint": type("LayerHint", (), {"Vector": 1, "Raster": 2, "Mesh": 3})})
    core.QgsProcessingAlgorithm, core.QgsProcessingProvider = Algorithm, Provider
    core.QgsProcessingContext, core.QgsProcessingException = Context, ProcessingError
    for name in ("OutputHtml", "OutputString", "ParameterBoolean", "ParameterDefinition", "ParameterEnum", "ParameterFile",
                 "ParameterFileDestination", "ParameterFolderDestination", "ParameterNumber", "ParameterRasterLayer",
                 "ParameterString", "ParameterVectorLayer"):
        setattr(core, "QgsProcessing" + name, type("QgsProcessing" + name, (Parameter,), {}))
    package = types.ModuleType("qgis")
    package.core = core
    sys.modules["qgis"], sys.modules["qgis.core"] = package, core
    return registry
