"""Fits of tables and arrays, compared with lmfit and SciPy where they are installed."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import solve

TIGHT = dict(function_tolerance=1e-15, max_iterations=500, device=HOST)


def decay(rng, rows=40, a=3.0, b=0.7, c=0.5, noise=0.05):
    t = np.linspace(0.1, 6, rows)
    error = noise * (0.5 + rng.random(rows))
    return {"t": t, "y": a * np.exp(-b * t) + c + error * rng.standard_normal(rows), "error": error}


MODEL = dict(model="a*exp(-b*t) + c", y="y")


def function(t, a, b, c):
    return a * np.exp(-b * t) + c


def test_tables_are_files_frames_and_dictionaries(rng, tmp_path):
    data = decay(rng)
    (tmp_path / "d.csv").write_text("t,y,error\n" + "".join(f"{t!r},{y!r},{e!r}\n" for t, y, e in zip(*(map(float, v) for v in data.values()))))
    of_file = solve.fit(tmp_path / "d.csv", **MODEL, **TIGHT)
    of_arrays = solve.fit({**data, "place": ["x"] * 40}, **MODEL, **TIGHT)  # a column that is not used may hold anything
    assert of_arrays.parameters == of_file.parameters and of_arrays.standard_errors == of_file.standard_errors
    assert of_arrays.covariance.shape == (3, 3)
    p = of_arrays.parameters
    np.testing.assert_allclose(of_arrays.fitted, function(data["t"], **p), rtol=1e-12)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data).sort_values("y")
    again = solve.fit(frame, **MODEL, **TIGHT)
    assert again.parameters == pytest.approx(p, rel=1e-9)
    np.testing.assert_allclose(again.fitted, function(frame["t"].to_numpy(), **again.parameters), rtol=1e-12)


@pytest.mark.parametrize("change, text", [
    ({"y": [1.0, np.nan]}, "column y is nan .*row 2"), ({"y": [1.0]}, "1 rows of column y"), ({"y": ["a", "b"]}, "column y.*numbers"),
    ({"y": [[1.0], [2.0]]}, "column y of shape")])
def test_bad_tables_are_refused(change, text):
    table = {"t": [0.0, 1.0], "y": [1.0, 2.0], **change}
    with pytest.raises(ls.InputError, match=text):
        solve.fit(table, model="a*t", y="y", device=HOST)
    for wrong, what in ((3, "a int"), ([{}], "columns"), ({"z": [1.0]}, "columns z")):
        with pytest.raises(ls.InputError, match=what):
            solve.fit(wrong, model="a*t", y="y", device=HOST)


@pytest.mark.parametrize("unit_t, unit_y", [(1, 1), (1e12, 1e-12), (1e-12, 1e12)])
@pytest.mark.parametrize("absolute", [False, True])
def test_errors_are_those_of_curve_fit(rng, unit_t, unit_y, absolute):
    optimize = pytest.importorskip("scipy.optimize")
    stats = pytest.importorskip("scipy.stats")
    data = decay(rng)
    start = [2.0, 1.0, 0.3]
    expected, covariance = optimize.curve_fit(function, data["t"], data["y"], start, sigma=data["error"], absolute_sigma=absolute,
                                              ftol=1e-14, xtol=1e-14, gtol=1e-14, jac=lambda t, a, b, c: np.stack(
                                                  [np.exp(-b * t), -a * t * np.exp(-b * t), np.ones_like(t)], 1))
    units = np.array([unit_y, 1 / unit_t, unit_y])
    scaled = {"t": data["t"] * unit_t, "y": data["y"] * unit_y, "error": data["error"] * unit_y}
    found = solve.fit(scaled, **MODEL, sigma="error", absolute_sigma=absolute, correlations=True, **TIGHT)
    np.testing.assert_allclose(list(found.parameters.values()), expected * units, rtol=1e-7)
    np.testing.assert_allclose(found.covariance, covariance * np.outer(units, units), rtol=1e-5)
    errors = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(found.correlations, covariance / np.outer(errors, errors), atol=1e-6)
    residuals = (data["y"] - function(data["t"], *expected)) / data["error"]
    assert found.chi_squared == pytest.approx((residuals ** 2).sum(), rel=1e-9)
    assert found.chi_squared_probability == pytest.approx(stats.chi2.sf(found.chi_squared, 37), rel=1e-9)
    k_squared, probability = stats.normaltest(residuals)
    assert found.normality == {"k_squared": pytest.approx(k_squared, rel=1e-6), "probability": pytest.approx(probability, rel=1e-6)}
    signs = residuals > 0
    assert found.runs["found"] == 1 + (signs[1:] != signs[:-1]).sum()


@pytest.mark.parametrize("unit_t, unit_y", [(1, 1), (1e12, 1e-12)])
def test_intervals_bands_and_criteria_are_lmfits(rng, unit_t, unit_y):
    lmfit = pytest.importorskip("lmfit")
    data = decay(rng)
    peer = lmfit.Model(function)
    expected = peer.fit(data["y"], t=data["t"], a=2.0, b=1.0, c=0.3, fit_kws={"ftol": 1e-14, "xtol": 1e-14})
    units = {"a": unit_y, "b": 1 / unit_t, "c": unit_y}
    found = solve.fit({"t": data["t"] * unit_t, "y": data["y"] * unit_y}, **MODEL, profile=True, bands=True, **TIGHT)
    n = len(data["t"])
    assert found.akaike - 2 * n * np.log(unit_y) == pytest.approx(expected.aic, rel=1e-9)
    assert found.bayes - 2 * n * np.log(unit_y) == pytest.approx(expected.bic, rel=1e-9)
    intervals = expected.conf_interval(sigmas=[1, 2, 3])
    for name, unit in units.items():
        assert found.parameters[name] == pytest.approx(expected.params[name].value * unit, rel=1e-6)
        assert found.standard_errors[name] == pytest.approx(expected.params[name].stderr * unit, rel=1e-3)
        own = found.profile["parameters"][name]
        values = [value * unit for _, value in intervals[name]]
        np.testing.assert_allclose(own["lower"][::-1] + own["upper"], values[:3] + values[4:], rtol=2e-4)
    np.testing.assert_allclose(found.bands["confidence"], expected.eval_uncertainty(sigma=0.95) * unit_y, rtol=2e-3)
    np.testing.assert_allclose(found.bands["prediction"], expected.dely_predicted * unit_y, rtol=2e-3)


def test_constraints_and_shared_parameters_are_lmfits(rng):
    lmfit = pytest.importorskip("lmfit")
    sets = [decay(rng), decay(rng, rows=25, a=9.0, c=-2.0)]
    parameters = lmfit.Parameters()
    for name, value in (("a_1", 2), ("a_2", 8), ("b", 1), ("c_1", 0), ("ratio", -3)):
        parameters.add(name, value=value)
    parameters.add("c_2", expr="ratio*c_1")

    def residuals(p):
        return np.concatenate([d["y"] - function(d["t"], p[f"a_{k}"], p["b"], p[f"c_{k}"]) for k, d in enumerate(sets, 1)])

    expected = lmfit.minimize(residuals, parameters, ftol=1e-14, xtol=1e-14)
    found = solve.fit(sets, **MODEL, shared=["b"], constraints={"c_2": "ratio*c_1"}, initial={"ratio": -3}, **TIGHT)
    assert found.degrees_of_freedom == expected.nfree and found.rows_of_sets == [40, 25]
    for name, value in found.parameters.items():
        assert value == pytest.approx(expected.params[name].value, rel=1e-5), name
        assert found.standard_errors[name] == pytest.approx(expected.params[name].stderr, rel=1e-2), name
    assert found.constraints == {"c_2": "ratio*c_1"} and len(found.fitted) == 65


def test_a_curve_at_points_is_lmfits(rng):
    lmfit = pytest.importorskip("lmfit")
    data, t = decay(rng), np.linspace(-1, 9, 23)
    expected = lmfit.Model(function).fit(data["y"], t=data["t"], a=2.0, b=1.0, c=0.3, fit_kws={"ftol": 1e-14, "xtol": 1e-14})
    found = solve.fit(data, **MODEL, bands=True, at={"t": t}, **TIGHT)
    np.testing.assert_allclose(found.at["fitted"], expected.eval(t=t), rtol=1e-6)
    np.testing.assert_allclose(found.at["confidence"], expected.eval_uncertainty(sigma=0.95, t=t), rtol=2e-3)
    with pytest.raises(ls.InputError, match="fit, at"):
        solve.fit(data, **MODEL, at={"time": t})


def test_a_curve_at_points_of_a_table_is_written(rng, tmp_path):
    data, t, file = decay(rng), np.linspace(-1, 9, 23), tmp_path / "c.csv"
    found = solve.fit(data, **MODEL, bands=True, at={"t": t}, curve=file, **TIGHT)
    table = np.genfromtxt(file, delimiter=",", names=True)
    np.testing.assert_array_equal(table["t"], t)
    for name in ("fitted", "confidence", "prediction"):
        np.testing.assert_array_equal(table[name], found.at[name], err_msg=name)
    with pytest.raises(ls.InputError, match="it has no effect without at .*curve"):
        solve.fit(data, **MODEL, curve=file, device=HOST)


def test_no_table_is_a_missing_file():
    for call in (solve.fit, solve.doctor):
        with pytest.raises(ls.InputError, match="file is missing"):
            call([], **MODEL, device=HOST)


def test_a_voigt_line_is_found_without_a_start(rng):
    special = pytest.importorskip("scipy.special")
    x, numbers = np.linspace(-4, 6, 161), {"amplitude": 7.0, "center": 0.8, "sigma": 0.35, "gamma": 0.2}

    def line(amplitude, center, sigma, gamma):
        return amplitude * special.wofz((x - center + 1j * gamma) / (sigma * np.sqrt(2))).real / (sigma * np.sqrt(2 * np.pi))

    y = line(**numbers)
    exact = solve.fit({"x": x, "y": y}, model="voigt(x)", y="y", bounds={"sigma": (0, np.inf), "gamma": (0, np.inf)}, **TIGHT)
    for name, value in numbers.items():
        assert exact.parameters[name] == pytest.approx(value, rel=1e-8), name
    np.testing.assert_allclose(exact.fitted, y, rtol=1e-10)
    noisy = solve.fit({"x": x, "y": y + 0.02 * rng.standard_normal(161)}, model="voigt(x)", y="y", **TIGHT)
    for name, value in numbers.items():
        assert abs(abs(noisy.parameters[name]) - value) < 5 * noisy.standard_errors[name], name


def test_shapes_are_lmfits():
    lineshapes = pytest.importorskip("lmfit.lineshapes")
    t = np.linspace(0.2, 3, 29)
    numbers = dict(amplitude=2.5, center=0.9, sigma=0.4)
    shapes = {"gaussian": (lineshapes.gaussian, numbers), "lorentzian": (lineshapes.lorentzian, numbers),
              "pseudo_voigt": (lineshapes.pvoigt, {**numbers, "fraction": 0.3}), "moffat": (lineshapes.moffat, {**numbers, "beta": 1.5}),
              "voigt": (lineshapes.voigt, {**numbers, "gamma": 0.25}), "lognormal": (lineshapes.lognormal, numbers),
              "exponential": (lineshapes.exponential, dict(amplitude=2, decay=0.7)),
              "power_law": (lineshapes.powerlaw, dict(amplitude=2, exponent=-1.3)),
              "sine": (lineshapes.sine, dict(amplitude=2, frequency=3, shift=0.4)),
              "linear": (lineshapes.linear, dict(slope=2, intercept=-1)), "quadratic": (lineshapes.parabolic, dict(a=1, b=-2, c=0.5))}
    for name, (peer, values) in shapes.items():
        y = peer(t, **values)
        held = dict(list(values.items())[1:])  # all but the first are held: it is found where the shapes are equal
        found = solve.fit({"t": t, "y": y}, model=f"{name}(t)", y="y", constraints={k: repr(float(v)) for k, v in held.items()}, **TIGHT)
        first = next(iter(values))
        assert found.parameters[first] == pytest.approx(values[first], rel=1e-9), name
        np.testing.assert_allclose(found.fitted, y, rtol=1e-9, err_msg=name)


def test_options_are_refused_by_name(rng):
    data = decay(rng)
    for options, text in ((dict(absolute_sigma=True), "absolute_sigma"), (dict(profile=True, loss="huber:1"), "profile"),
                          (dict(shared=["b"]), "shared"), (dict(constraints={"c": ""}), "constraints"),
                          (dict(constraints={"a": "b", "b": "a"}), "circle"), (dict(constraints={"c": "2*"}), "constraint of c")):
        with pytest.raises(ls.InputError, match=text):
            solve.fit(data, **MODEL, device=HOST, **options)
