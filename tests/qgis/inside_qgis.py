"""Runs in QGIS's own Python: python3 inside_qgis.py look LAYER… | run PLUGINS JOB.json; a line of JSON each."""
import json
import sys

from qgis.core import (QgsApplication, QgsCoordinateReferenceSystem, QgsFeature, QgsGeometry, QgsMeshLayer, QgsProcessingContext,
                       QgsProcessingFeedback, QgsProject, QgsRasterLayer, QgsVectorLayer, QgsWkbTypes)


def look(path):
    """How QGIS opens a layer: system, and the style next to a grid, the shapes, or the times of a mesh."""
    if path.endswith(".nc"):
        layer = QgsMeshLayer(path, "", "mdal")
        provider = layer.dataProvider()
        return {"valid": layer.isValid(), "groups": provider.datasetGroupCount(), "steps": provider.datasetCount(0),
                "time": provider.temporalCapabilities().hasReferenceTime()}
    if path.endswith(".tif"):
        layer = QgsRasterLayer(path)
        ramp = layer.renderer().shader().rasterShaderFunction().colorRampItemList()
        return {"crs": layer.crs().authid(), "renderer": type(layer.renderer()).__name__, "colours": len(ramp),
                "ends": [ramp[0].value, ramp[-1].value]}
    layer = QgsVectorLayer(path, "", "ogr")
    return {"crs": layer.crs().authid(), "shapes": QgsWkbTypes.displayString(layer.wkbType()), "features": layer.featureCount()}


class Feedback(QgsProcessingFeedback):
    """Keeps what an algorithm reports; cancels itself once `cancel_at` percent are reached."""

    def __init__(self, cancel_at):
        super().__init__(False)
        self.percent, self.lines, self.warnings = [], [], []
        self.progressChanged.connect(self.percent.append)
        if cancel_at is not None:
            self.progressChanged.connect(lambda percent: percent >= cancel_at and self.cancel())

    def pushInfo(self, line):  # noqa: N802
        self.lines.append(line)

    def pushWarning(self, line):  # noqa: N802
        self.warnings.append(line)


def memory_layer(shapes):
    """A layer of no file, of shapes {"crs", "areas": {name: WKT}}."""
    layer = QgsVectorLayer("Polygon?field=name:string", "areas", "memory")
    layer.setCrs(QgsCoordinateReferenceSystem(shapes["crs"]))
    for name, wkt in shapes["areas"].items():
        feature = QgsFeature(layer.fields())
        feature["name"] = name
        feature.setGeometry(QgsGeometry.fromWkt(wkt))
        layer.dataProvider().addFeature(feature)
    layer.updateExtents()
    return layer


def run(plugins, job):
    sys.path.insert(0, plugins)
    import lockstep_qgis

    plugin = lockstep_qgis.classFactory(None)
    plugin.initProcessing()
    algorithm = QgsApplication.processingRegistry().createAlgorithmById("lockstep:" + job["algorithm"])
    context, feedback = QgsProcessingContext(), Feedback(job.get("cancel_at"))
    context.setProject(QgsProject.instance())
    if job.get("areas"):
        layer = memory_layer(job["areas"])
        QgsProject.instance().addMapLayer(layer)
        job["parameters"]["areas"] = layer.id()
    results, well = algorithm.run(job["parameters"], context, feedback)
    loaded = context.layersToLoadOnCompletion()
    valid = [context.getMapLayer(path) is not None or _opens(path) for path in loaded]
    plugin.unload()
    return {"well": well, "results": results, "percent": feedback.percent, "lines": feedback.lines, "warnings": feedback.warnings,
            "layers": {path: details.name for path, details in loaded.items()}, "opens": all(valid),
            "unloaded": QgsApplication.processingRegistry().providerById("lockstep") is None}


def _opens(path):
    found = look(path)
    return found.get("valid", True) and found.get("features", 1) > 0


application = QgsApplication([], False)
application.initQgis()
if sys.argv[1] == "look":
    for one in sys.argv[2:]:
        print(json.dumps(look(one)))
else:
    with open(sys.argv[3], encoding="utf-8") as file:
        print(json.dumps(run(sys.argv[2], json.load(file))))
application.exitQgis()
