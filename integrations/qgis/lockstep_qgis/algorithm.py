"""One command of the program as an algorithm of Processing."""
from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputHtml,
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
        made = QgsProcessingParameterFileDestination(name, text, "GeoPackage (*.gpkg);;CSV (*.csv)", optional=optional)
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
        if self.command in ("compare", "plant"):
            self.addOutput(QgsProcessingOutputHtml("PAGE", "the page of the comparison"))

    def _areas(self, parameters, name, context, feedback, values):
        """A file of shapes; layers of other kinds, and selected features, are exported to one."""
        values[name], layer = self.parameterAsCompatibleSourceLayerPathAndLayerName(
            parameters, name, context, ["gpkg", "shp", "geojson", "json", "csv"], "gpkg", feedback)
        if values[name].endswith(".gpkg") and layer:
            values["layer"] = layer
        system = self.parameterAsVectorLayer(parameters, name, context).crs()
        if values[name].endswith(".csv") and system.isValid() and any(o["name"] == "areas_crs" for o in lockstep.options_of(self.command)):
            values["areas_crs"] = system.authid()  # the file has none; the project may

    def _values(self, parameters, context, feedback):
        values = {}
        for option in lockstep.options_of(self.command):
            name, kind = option["name"], option["kind"]
            if parameters.get(name) is None and kind not in ("out_folder", "out_file"):
                continue
            if kind == "raster":
                layer = self.parameterAsRasterLayer(parameters, name, context)
                if layer.providerType() != "gdal":
                    raise QgsProcessingException(f"{name}: a layer of {layer.providerType()}: expected a raster file")
                values[name] = layer.source()
            elif kind == "vector":
                self._areas(parameters, name, context, feedback, values)
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

    def checkParameterValues(self, parameters, context):  # noqa: N802
        """QGIS names the missing file of a raster, of areas and points only the parameter."""
        for option in lockstep.options_of(self.command):
            path = parameters.get(option["name"])
            if option["kind"] == "vector" and isinstance(path, str) and path and \
                    self.parameterAsVectorLayer(parameters, option["name"], context) is None:
                return False, f"{option['name']}: {path} was not found, or has no layer that QGIS reads"
        return super().checkParameterValues(parameters, context)

    def processAlgorithm(self, parameters, context, feedback):  # noqa: N802
        import json

        values = self._values(parameters, context, feedback)

        def say(line):
            (feedback.pushWarning if "warning:" in line else feedback.pushInfo)(line)

        try:
            found = lockstep.run(self.command, values, feedback.setProgress, say, feedback.isCanceled)
        except lockstep.Cancelled:
            return {}
        except lockstep.Failed as failure:
            raise QgsProcessingException(str(failure)) from None
        feedback.setProgress(100)  # quick runs report none
        for line, doubtful in lockstep.findings_of(found):
            (feedback.pushWarning if doubtful else feedback.pushInfo)(line)
        # A .qml next to a GeoTIFF is the style that QGIS opens it with. NetCDF is a mesh, whose times the temporal controller
        # knows.
        for path, name in lockstep.layers_of(found):
            hint = getattr(QgsProcessingUtils.LayerHint, lockstep.kind_of(path))
            context.addLayerToLoadOnCompletion(path, QgsProcessingContext.LayerDetails(name, context.project(), name, hint))
        results = {"RESULT": json.dumps(found)}
        for option in lockstep.options_of(self.command):
            if option["kind"] in ("out_folder", "out_file"):
                results[option["name"]] = values.get(option["name"])
        page = found.get("page") or found.get("comparison")
        if page:
            results["PAGE"] = page
        return results
