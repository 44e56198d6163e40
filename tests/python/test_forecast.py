"""Learning curves, rollouts, states and training from Python."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST, recurrent_model
from lockstep import forecast


def test_a_power_law_is_forecast(tmp_path):
    steps = np.arange(0, 2000, 20.0)
    losses = 0.5 + 2 * (steps + 10) ** -0.5
    found = forecast.curve(steps, losses, horizon=4000, out=tmp_path / "curve.png")
    last = found["prediction"][-1]
    truth = 0.5 + 2 * 4010 ** -0.5
    assert last["step"] == 4000 and last["low"] <= truth <= last["high"] and last["mean"] == pytest.approx(truth, rel=0.03)
    assert (tmp_path / "curve.png").stat().st_size > 0
    (tmp_path / "log.csv").write_text("step,loss\n" + "".join(f"{s},{v}\n" for s, v in zip(steps, losses)))
    assert forecast.curve(tmp_path / "log.csv", horizon=4000)["prediction"][-1]["mean"] == last["mean"]
    with pytest.raises(ls.InputError, match="colour"):
        forecast.curve(steps, losses, colour=1)
    with pytest.raises(ls.InputError, match="column accuracy"):
        forecast.curve(tmp_path / "log.csv", column="accuracy")


def rollout_reference(model, steps):
    """Formulas of lockstep/forecast/rollout.hpp: GRUs with the reset before, classic heads, in f64."""
    sigmoid = lambda a: 1 / (1 + np.exp(-a))  # noqa: E731
    trajectories = []
    for m in range(len(model["W_z"])):
        x, h = model["features"].astype("f8").copy(), model["h0"][m].astype("f8")
        d, s = len(h), len(model["w"]) - len(h)
        row = []
        for _ in range(steps):
            z = sigmoid(model["W_z"][m] @ x + model["U_z"][m] @ h + model["b_z"][m])
            r = sigmoid(model["W_r"][m] @ x + model["U_r"][m] @ h + model["b_r"][m])
            n = np.tanh(model["W_h"][m] @ x + model["U_h"][m] @ (r * h) + model["b_h"][m])
            h = (1 - z) * h + z * n
            logits = h[np.arange(s) * d // s]
            soft = np.exp(logits - logits.max())
            x[0] = max(np.exp(np.clip(model["w"] @ np.concatenate([h, soft / soft.sum()]), -10, 10)), 1e-6)
            row.append(x[0])
        trajectories.append(row)
    return np.array(trajectories)


def test_a_rollout_follows_its_formulas(rng):
    model = recurrent_model(rng)
    found = forecast.rollout(model, steps=5, device=HOST)
    expected = rollout_reference(model, 5)
    np.testing.assert_allclose([m["trajectory"] for m in found["members"]], expected, rtol=1e-12)
    np.testing.assert_allclose(found["trajectory"], expected.mean(0), rtol=1e-12)
    with pytest.raises(ls.InputError, match="array Q"):
        forecast.rollout({**model, "Q": np.zeros(3)}, steps=1)
    with pytest.raises(ls.InputError, match="U_z.*expected"):
        forecast.rollout({**model, "U_z": np.zeros((1, 2, 3))}, steps=1, device=HOST)
    assert forecast.rollout(hidden=8, members=2, steps=3, device=HOST)["trajectory"] == \
        forecast.rollout(hidden=8, members=2, steps=3, device="interp")["trajectory"]


def test_states_are_features_by_name():
    losses = 1 / np.arange(1.0, 31)
    found = forecast.encode({"loss": losses, "lr": np.full(30, 1e-3)}, precision="f64", device=HOST)
    names = list(forecast.FEATURES)
    assert found["features"].shape == (30, 64) == found["normalised"].shape and len(names) == 64
    np.testing.assert_array_equal(found["features"][:, names.index("loss")], losses)
    assert any(text.startswith("grad_norm") for text in found["filled"])
    encoder = forecast.StateEncoder(history=10, precision="f64", device=HOST)
    encoder.push({"step": 0, "loss": 0.5})
    assert encoder.features().numpy()[0, names.index("loss")] == 0.5
    with pytest.raises(ls.InputError, match="signal colour"):
        encoder.push({"colour": 1})


def test_training_and_sweeps(tmp_path):
    seen = []
    found = forecast.train("xor", steps=20, evaluate_every=10, seeds=1, device=HOST, progress=lambda done, total: seen.append(done))
    assert found["task"] == "xor" and found["steps"] == 20 and seen and seen[-1] == 20
    with pytest.raises(ls.InputError, match="argument trainer"):
        forecast.train("xor", trainer="lucky")
    with pytest.raises(KeyError, match="enough"):
        def stop(done, total):
            raise KeyError("enough")
        forecast.train("xor", steps=20, device=HOST, progress=stop)
    steps = np.arange(100.0)
    rows = forecast.sweep(steps, [0.2 * k + 1 / (steps + 1) for k in range(1, 6)])
    assert {r["policy"] for r in rows} >= {"halving"} and all(r["regret"] == 0 for r in rows if r["policy"] == "halving")


def test_columns_in_memory_are_those_that_a_file_may_have():
    steps, losses = np.arange(50.0), 2 * np.exp(-np.arange(50.0) / 20) + 0.1
    hole = losses.copy()
    hole[7] = np.nan
    for series, words in (((steps[:40], losses), "40 steps and 50 values"), ((steps[::-1], losses), "do not increase"),
                          ((0 * steps, losses), "do not increase"), ((steps, hole), "nan at step 7"), (losses[:, None], r"shape \(50, 1\)")):
        with pytest.raises(ls.InputError, match=words):
            forecast.encode({"loss": series}, device=HOST)
    with pytest.raises(ls.InputError, match=r"list \[lockstep.forecast.encode, argument log\]"):
        forecast.encode([1.0, 2.0], device=HOST)
    with pytest.raises(ls.InputError, match=r"shape \(5, 10\).*argument steps"):
        forecast.curve(steps.reshape(5, 10), losses)
