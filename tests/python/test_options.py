"""Options that the library declares: signatures, stubs, docstrings and errors are those of the declarations."""
import ast
import inspect
import math
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import _options, flow, forecast, pde, solve, urban

DESCRIBED = {"flow.simulation": flow.Simulation.__init__, "flow.run": flow.run, "flow.encode": flow.encode, "flow.learn": flow.learn,
             "flow.pipeline": flow.pipeline, "forecast.curve": forecast.curve, "forecast.rollout": forecast.rollout, "forecast.train": forecast.train,
             "forecast.compute_encode": forecast.encode, "forecast.compute_sweep": forecast.sweep,
             "pde.example": pde.example, "pde.study": pde.study, "pde.convergence": pde.convergence, "solve.minimize": solve.Problem.minimize, "solve.fit": solve.fit,
             "solve.posegraph": solve.posegraph, "solve.bundle": solve.bundle, "solve.mesh": solve.mesh, "solve.sketch": solve.sketch, "solve.doctor": solve.doctor,
             "urban.compute_shadows": urban.shadows, "urban.compute_walls": urban.walls,
             "urban.compute_svf": urban.svf, "urban.run": urban.run, "urban.check": urban.check, "urban.validate": urban.validate,
             "urban.gates": urban.gates, "urban.sample": urban.sample, "urban.umep": urban.umep,
             "urban.sun": urban.sun, "urban.plant": urban.plant, "urban.compare": urban.compare, "urban.stats": urban.stats, "urban.compute_pet": urban.pet}
# Parameters of their own: another default, or more kinds of values than a command takes.
OWN = {"members", "precision", "max_error", "outputs", "pictures", "azimuth", "altitude", "dem", "cdsm", "tdsm", "land_cover", "wall_height",
       "wall_aspect"}


def calls(tmp_path):
    """Functions that take keyword arguments of a command."""
    fields = np.zeros((2, 16, 16), "f4")
    city, place = np.zeros((8, 8), "f4"), dict(pixel_size=1.0, device=HOST)
    files = dict(dsm=tmp_path / "dsm.npy", weather=tmp_path / "w.csv", device=HOST)
    return {"urban.compute_shadows": lambda **o: urban.shadows(city, **{"azimuth": 180, "altitude": 30, **place, **o}),
            "urban.compute_walls": lambda **o: urban.walls(city, **{**place, **o}),
            "urban.compute_svf": lambda **o: urban.svf(city, **{"patches": 145, **place, **o}),
            "urban.run": lambda **o: urban.run(**{**files, "out": tmp_path / "run", **o}),
            "urban.check": lambda **o: urban.check(**{**files, **o}),
            "urban.validate": lambda **o: urban.validate(**{**files, "measured": tmp_path / "m.csv", "out": tmp_path / "run", **o}),
            "urban.gates": lambda **o: urban.gates(**{"device": HOST, **o}),
            "urban.sample": lambda **o: urban.sample(tmp_path / "sample", **o),
            "urban.umep": lambda **o: urban.umep(tmp_path / "svf", out=tmp_path / "umep", **o),
            "urban.sun": lambda **o: urban.sun(tmp_path / "dsm.npy", out=tmp_path / "sun", device=HOST, **{"date": "2026-03-21", **o}),
            "urban.plant": lambda **o: urban.plant(**{**files, "trees": 1, "species": "3,1,2", "out": tmp_path / "trees", **o}),
            "urban.compare": lambda **o: urban.compare(tmp_path / "a", tmp_path / "b", out=tmp_path / "change", **o),
            "urban.stats": lambda **o: urban.stats(tmp_path / "a", areas=tmp_path / "areas.csv", out=tmp_path / "t.csv", **o),
            "urban.compute_pet": lambda **o: urban.pet(20.0, ta=20, rh=40, wind=1, **o),
            "flow.simulation": lambda **o: flow.Simulation(**{"n": 16, "device": HOST, **o}),
            "flow.run": lambda **o: flow.run(tmp_path / "run", device=HOST, **o),
            "flow.encode": lambda **o: flow.encode(fields, device=HOST, **o),
            "flow.learn": lambda **o: flow.learn(np.zeros((8, 2)), **o),
            "flow.pipeline": lambda **o: flow.pipeline(tmp_path / "pipeline", device=HOST, **o),
            "forecast.curve": lambda **o: forecast.curve(np.arange(40.0), np.exp(-np.arange(40.0) / 9) + 1, **o),
            "forecast.rollout": lambda **o: forecast.rollout(device=HOST, **o),
            "forecast.compute_encode": lambda **o: forecast.encode({"loss": 1 / np.arange(1.0, 30)}, device=HOST, **o),
            "forecast.compute_sweep": lambda **o: forecast.sweep(np.arange(50.0), np.ones((4, 50)), **o),
            "forecast.train": lambda **o: forecast.train("xor", device=HOST, **{"steps": 2, **o}),
            "pde.study": lambda **o: pde.study(device=HOST, **{"sizes": [4], "iterations": 1, **o}),
            "pde.convergence": lambda **o: pde.convergence(device=HOST, **o),
            "pde.example": lambda **o: pde.example("heat", out=tmp_path / "heat", device=HOST, **o),
            "solve.minimize": lambda **o: solve.Problem().minimize(device=HOST, **o),
            "solve.fit": lambda **o: solve.fit("d.csv", model="a*x", y="y", device=HOST, **o),
            "solve.posegraph": lambda **o: solve.posegraph("ring.g2o", device=HOST, **o),
            "solve.bundle": lambda **o: solve.bundle(device=HOST, **o),
            "solve.mesh": lambda **o: solve.mesh("icosphere:1", device=HOST, **{"energy": "springs", **o}),
            "solve.sketch": lambda **o: solve.sketch("t.toml", device=HOST, **o),
            "solve.doctor": lambda **o: solve.doctor("t.g2o", device=HOST, **o)}


@pytest.mark.parametrize("command", DESCRIBED)
def test_a_signature_is_its_declaration(command):
    parameters = inspect.signature(DESCRIBED[command]).parameters
    assert not [p for p in parameters.values() if p.kind == p.VAR_KEYWORD]
    for option in ls.options(command):
        if option["argument"] != option["name"] or option["required"]:
            continue
        assert option["name"] in parameters
        if option["name"] not in OWN and option["name"] not in DESCRIBED[command].own_parameters:
            assert parameters[option["name"]].default == option["default"]
            assert re.search(rf"(?m)^    {option['name']} \(", DESCRIBED[command].__doc__)


@pytest.mark.parametrize("command", DESCRIBED)
def test_the_stub_has_types_and_defaults_of_the_declaration(command):
    function = DESCRIBED[command]
    with open(os.path.splitext(inspect.getfile(inspect.getmodule(function)))[0] + ".pyi", encoding="utf-8") as file:
        tree = ast.parse(file.read())
    name, _, outer = function.__qualname__.rpartition(".")[::-1]
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == outer) if outer else tree.body
    told = next(n for n in body if isinstance(n, ast.FunctionDef) and n.name == name).args
    found = {a.arg: (ast.unparse(a.annotation), ast.literal_eval(d))
             for a, d in zip(told.kwonlyargs, told.kw_defaults) if a.arg not in function.own_parameters}
    declared = {o["name"]: (ast.unparse(ast.parse(_options.annotation(o))), o["default"]) for o in ls.options(command)
                if o["name"] in inspect.signature(function).parameters and o["name"] not in function.own_parameters}
    assert found == declared


def test_stubs_are_written_without_numpy(tmp_path):
    """A build in an environment of its own has no NumPy."""
    built, own = pathlib.Path(ls.__file__).parent, tmp_path / "lockstep"
    (own / "forecast").mkdir(parents=True)
    for file in built.iterdir():
        if file.suffix in (".py", ".so"):
            (own / file.name).symlink_to(file.resolve())
    writer = pathlib.Path(__file__).parents[2] / "python/stubs/write_stubs.py"
    code = f"import runpy, sys; sys.modules['numpy'] = None; sys.argv = ['w', {str(own)!r}]; runpy.run_path({str(writer)!r}, run_name='__main__')"
    subprocess.run([sys.executable, "-B", "-c", code], check=True)
    for stub in ("solve.pyi", "forecast/__init__.pyi"):
        assert (own / stub).read_text(encoding="utf-8") == (built / stub).read_text(encoding="utf-8")


def outside(option):
    if option["choices"]:
        return ["no such thing"]
    if option["type"] == "float":
        return ["much", math.nan] + [math.inf] * (option["name"] != "max_reach")  # inf: no limit
    if option["type"] == "int":
        return ["much", 1.5] if not option["list"] else [["much"]]
    return [object()] if option["type"] in ("bool", "str", "str or int") else []


def test_values_that_do_not_fit_name_their_argument(tmp_path):
    for command, call in calls(tmp_path).items():
        known = {"flow.learn": {"rollout"}, "forecast.curve": {"column"}}.get(command, set())  # of logs and files
        for option in ls.options(command):
            if option["argument"] != option["name"] or option["required"] or option["name"] in known | {"members", "max_error"}:
                continue
            for value in outside(option):
                with pytest.raises(ls.InputError, match=rf"argument {option['name']}="):
                    call(**{option["name"]: value})


def test_rules_speak_of_arguments(tmp_path):
    call = calls(tmp_path)
    for command, options, words in (
            ("flow.simulation", dict(viscosity=-1), r"'-1' \[lockstep.flow.Simulation, argument viscosity=\]: expected a number of at least 0"),
            ("flow.simulation", dict(n=2), r"2 x 2 points \[lockstep.flow.Simulation, argument n=\]"),
            ("flow.simulation", dict(n=16, dt=0.1, viscosity=1.0), r"unstable for the linear terms \[lockstep.flow.Simulation, argument dt=\]"),
            ("flow.simulation", dict(averaging="local"), "argument averaging=.*closure dynamic-smagorinsky"),
            ("flow.simulation", dict(closure="dynamic-leith", constant=0.2), "argument constant="),
            ("flow.simulation", dict(forcing="stochastic"), "argument forcing_amount="),
            ("flow.simulation", dict(forcing="kolmogorov", forcing_amount=1.0, forcing_seed=5), "nothing is random.*argument forcing_seed="),
            ("flow.simulation", dict(hyper_power=2), "argument hyper_power="),
            ("flow.run", dict(initial="shear", seed=3), "nothing is random"),
            ("flow.run", dict(steps=3, time=1.0), "steps and time"),
            ("flow.run", dict(initial="absent.nc"), "argument initial="),
            ("flow.encode", dict(codec="classic", share=0.5), "argument share=.*codec v2"),
            ("flow.learn", dict(vectors=2, vector_share=0.5), "vectors and vector_share"),
            ("flow.pipeline", dict(save_every=3), "argument save_every"),
            ("forecast.curve", dict(coverage=2.0), "'2'.*lockstep.forecast.curve, argument coverage="),
            ("forecast.rollout", dict(model="m.npz", hidden=3), "argument hidden="),
            ("forecast.rollout", dict(model={}, members=8192), "argument members="),
            ("forecast.train", dict(spacing=3), "argument spacing=.*trainer predictive"),
            ("forecast.train", dict(trainer="predictive", control="lr", correct=3), "argument correct=.*control none"),
            ("forecast.train", dict(trainer="predictive", horizons=[1e9]), "'1000000000'.*argument horizons="),
            ("pde.example", dict(cells=3), "'3'.*lockstep.pde.example, argument cells="),
            ("pde.example", dict(parameters={"wind": 1}), "unknown parameter wind.*argument parameters="),
            ("forecast.compute_sweep", dict(check_every=0), r"'0' \[lockstep.forecast.sweep, argument check_every=\]"),
            ("forecast.compute_encode", dict(history=1001), "'1001'.*lockstep.forecast.encode, argument history="),
            ("pde.study", dict(boundaries=["clamp", "what"]), r'unknown boundary "what" \[lockstep.pde.study, argument boundaries=\]'),
            ("pde.convergence", dict(sizes=[9]), "'9'.*lockstep.pde.convergence, argument sizes="),
            ("urban.compute_pet", dict(mass=-1), r"'-1(.0)?' \[lockstep.urban.pet, argument mass=\]"),
            ("urban.umep", dict(format="npy"), "UMEP's files.*lockstep.urban.umep, argument format=.*svfs.zip"),
            ("solve.minimize", dict(method="gn", damping="identity"), "argument damping=.*method lm, dogleg or newton"),
            ("solve.minimize", dict(graduation=0.5), r"'0.5' \[lockstep.solve.Problem.minimize, argument graduation=\]"),
            ("solve.fit", dict(loss="huber"), "'huber'.*argument loss="),
            ("solve.fit", dict(bounds={"a": (2, 1)}), "'2:1'.*argument bounds=.*LOW below HIGH"),
            ("solve.fit", dict(initial={"a": "b"}), "'b'.*argument initial="),
            ("solve.fit", dict(plot="absent/p.png"), "no folder 'absent'.*argument plot="),
            ("solve.bundle", dict(), "no input.*expected file or cameras"),
            ("solve.bundle", dict(noise=2.0), "argument noise=.*cameras and observations"),
            ("solve.mesh", dict(view=(0, 0)), "'0,0'.*argument view="),
            ("solve.mesh", dict(edges=True), "argument edges=.*picture"),
            ("solve.mesh", dict(gravity=2.0), "energy springs.*argument gravity="),
            ("solve.sketch", dict(loss="huber:1"), "argument loss=|t.toml")):
        with pytest.raises(ls.InputError, match=words):
            call[command](**options)


def test_an_unknown_argument_names_the_nearest_one(tmp_path):
    call = calls(tmp_path)["flow.run"]
    for wrong, right in (("viscosty", "viscosity"), ("nu", "viscosity"), ("ensemble", "members"), ("save-every", "save_every")):
        with pytest.raises(ls.InputError, match=f"argument {wrong}") as caught:
            call(**{wrong: 1})
        assert f"did you mean {right}?" in caught.value.hint
    with pytest.raises(ls.InputError, match="flow.fly") as caught:
        ls.options("flow.fly")
    # A flag of the shell alone is no option here.
    assert not {"watch", "memory"} & {option["name"] for option in ls.options("flow.run")}
    with pytest.raises(ls.InputError, match="argument watch"):
        call(watch=True)


def test_options_reach_the_run(tmp_path):
    told = flow.run(tmp_path / "run", n=(16, 32), box=(1.0, 2.0), steps=4, dt=1e-3, history_every=2, format="npz", device=HOST)
    assert told["n"] == [16, 32] and told["box"] == [1.0, 2.0]
    assert "history_time" in np.load(tmp_path / "run" / "run.npz")
    adaptive = flow.run(tmp_path / "cfl", n=16, steps=4, cfl=0.5, format="npz", device=HOST)
    assert adaptive["dt_min"] <= 0.1
    both = flow.pipeline(tmp_path / "both", n=16, steps=12, strides=[1, 2], cut=2.0, dt=1e-3, device=HOST)
    assert [run["stride"] for run in both["runs"]] == [1, 2]
