"""One command of the program as an algorithm of Processing."""
from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputFile,
    QgsProcessingOutputString,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFile,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterNumber,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorLayer,
    QgsProcessingUtils,
)

from . import command as lockstep

TITLES = {"check": "Check the inputs of a run", "run": "Heat stress hour by hour", "sun": "Hours of sun",
          "compare": "Compare two runs", "stats": "Statistics by area", "plant": "Where trees help most"}


def parameter_of(option):
    """The parameter of Processing for an option of the reference."""
    name, text, optional, default = option["name"], option["help"], not option["required"], option["default"]
    kind = option["kind"]
    if kind == "raster":
        made = QgsProcessingParameterRasterLayer(name, text, optional=optional)
    elif kind == "vector":
        made = QgsProcessingParameterVectorLayer(name, text, [QgsProcessing.TypeVectorAnyGeometry], optional=optional)
    elif kind == "file":
        made = QgsProcessingParameterFile(name, text, optional=optional)
    elif kind == "folder":
        made = QgsProcessingParameterFile(name, text, behavior=QgsProcessingParameterFile.Folder, optional=optional)
    elif kind == "out_folder":
        made = QgsProcessingParameterFolderDestination(name, text, optional=optional)
    elif kind == "out_file":
        made = QgsProcessingParameterFileDestination(name, text, "CSV (*.csv)", optional=optional)
    elif kind == "flag":
        made = QgsProcessingParameterBoolean(name, text, defaultValue=default, optional=True)
    elif kind == "choice":
        made = QgsProcessingParameterEnum(name, text, options=option["choices"], usesStaticStrings=True,
                                          defaultValue=default, optional=optional)
    elif kind in ("number", "whole"):
        made = QgsProcessingParameterNumber(
            name, text, QgsProcessingParameterNumber.Integer if kind == "whole" else QgsProcessingParameterNumber.Double,
            defaultValue=default, optional=optional)
        if option["low"] is not None:
            made.setMinimum(option["low"])
        if option["high"] is not None:
            made.setMaximum(option["high"])
    else:
        made = QgsProcessingParameterString(name, text, defaultValue=default, optional=optional)
    if option["advanced"]:
        made.setFlags(made.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
    return made


class LockstepAlgorithm(QgsProcessingAlgorithm):
    def __init__(self, command):
        super().__init__()
        self.command = command

    def createInstance(self):  # noqa: N802
        return LockstepAlgorithm(self.command)

    def name(self):
        return self.command

    def displayName(self):  # noqa: N802
        return TITLES.get(self.command, self.command)

    def shortHelpString(self):  # noqa: N802
        return "\n".join(f"{option['name']}: {option['help']}" for option in lockstep.options_of(self.command))

    def initAlgorithm(self, config=None):  # noqa: N802
        for option in lockstep.options_of(self.command):
            self.addParameter(parameter_of(option))
        self.addOutput(QgsProcessingOutputString("RESULT", "the program's result (JSON)"))
        if self.command == "compare":
            self.addOutput(QgsProcessingOutputFile("PAGE", "the page of the comparison"))

    def _values(self, parameters, context):
        values = {}
        for option in lockstep.options_of(self.command):
            name, kind = option["name"], option["kind"]
            if parameters.get(name) is None and kind not in ("out_folder", "out_file"):
                continue
            if kind == "raster":
                layer = self.parameterAsRasterLayer(parameters, name, context)
                values[name] = layer.source() if layer is not None else None
            elif kind == "vector":
                layer = self.parameterAsVectorLayer(parameters, name, context)
                if layer is not None:
                    values[name], _, inner = layer.source().partition("|layername=")
                    if inner:
                        values["layer"] = inner.partition("|")[0]
            elif kind == "out_folder" or kind == "out_file":
                values[name] = self.parameterAsFileOutput(parameters, name, context)
            elif kind == "flag":
                values[name] = self.parameterAsBool(parameters, name, context)
            elif kind == "whole":
                values[name] = self.parameterAsInt(parameters, name, context)
            elif kind == "number":
                values[name] = self.parameterAsDouble(parameters, name, context)
            else:
                values[name] = self.parameterAsString(parameters, name, context)
        return values

    def processAlgorithm(self, parameters, context, feedback):  # noqa: N802
        import json

        values = self._values(parameters, context)
        try:
            found = lockstep.run(self.command, values, feedback.setProgress, feedback.pushInfo, feedback.isCanceled)
        except lockstep.Cancelled:
            return {}
        except lockstep.Failed as failure:
            raise QgsProcessingException(str(failure)) from None
        # A .qml next to a GeoTIFF is the style that QGIS opens it with. NetCDF is a mesh, whose times the temporal controller
        # knows.
        for path, name in lockstep.layers_of(found):
            hint = getattr(QgsProcessingUtils.LayerHint, lockstep.kind_of(path))
            context.addLayerToLoadOnCompletion(path, QgsProcessingContext.LayerDetails(name, context.project(), name, hint))
        results = {"RESULT": json.dumps(found)}
        for option in lockstep.options_of(self.command):
            if option["kind"] in ("out_folder", "out_file"):
                results[option["name"]] = values.get(option["name"])
        if found.get("page"):
            results["PAGE"] = found["page"]
        return results
