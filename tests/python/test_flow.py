"""Simulations, codec, surrogate and the commands from files to files."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import flow

N = 16


def simulation(**options):
    return flow.Simulation(N, **{**dict(dt=1e-2, viscosity=1e-3, precision="f64", device=HOST), **options})


def fields(count, stride=2):
    run = simulation(precision="f32").set_vorticity(flow.initial_field(N, seed=3))
    return np.stack([run.advance(stride).vorticity()[0] for _ in range(count)])


def test_a_taylor_green_vortex_decays_as_it_must():
    run = simulation(viscosity=0.1, integrator="rk4")
    start = flow.initial_field(N, "taylor-green")
    found = run.set_vorticity(start).advance(20).vorticity()[0]
    wave = np.abs(np.fft.fft2(start))
    ky, kx = np.unravel_index(wave.argmax(), wave.shape)
    k2 = min(kx, N - kx) ** 2 + min(ky, N - ky) ** 2
    np.testing.assert_allclose(found, start * np.exp(-0.1 * k2 * 0.2), atol=1e-8)
    assert run.steps == [20] and run.times[0] == pytest.approx(0.2) and run.blown_up() == []
    budget = run.budget()[0]
    assert budget["enstrophy"] == pytest.approx(0.5 * (found ** 2).mean(), rel=1e-12)
    assert run.spectra()[0]["energy"].sum() == pytest.approx(budget["energy"], rel=1e-10)


def test_a_blow_up_is_said_where_the_state_is_read():
    run = simulation(dt=0.7, viscosity=1e-4, closure="none").set_vorticity(50 * flow.initial_field(N, seed=1)).advance(40)
    with pytest.warns(RuntimeWarning, match="member 0 of the flow blew up"):
        assert not np.isfinite(run.vorticity()).all() or run.blown_up()
    with pytest.warns(RuntimeWarning, match="blew up"):
        run.budget()
    assert np.isfinite(run.last_sound_vorticity()).all()


def test_the_seed_of_the_forcing_counts(tmp_path):
    def energy(**options):
        return flow.run(tmp_path / "out", n=N, steps=20, dt=1e-2, forcing="stochastic", forcing_wavenumber=3, forcing_amount=1,
                        initial="taylor-green", format="npz", device=HOST, **options)["energy"]
    same, other = energy(seed=5), energy(seed=5, forcing_seed=6)
    assert energy(seed=9, forcing_seed=5) == same
    assert other != same and energy(seed=6) == other


def test_states_and_members_keep_their_bits():
    start = np.stack([flow.initial_field(N, seed=s) for s in (1, 2)])
    both = simulation(members=2, closure="smagorinsky").set_vorticity(start).advance(6)
    one = simulation(closure="smagorinsky").set_vorticity(start[1]).advance(3)
    other = simulation(closure="smagorinsky").load_state_dict(one.state_dict()).advance(3)
    np.testing.assert_array_equal(both.vorticity()[1], other.vorticity()[0])
    assert both.shape == (2, N, N) == both.vorticity(out=True).shape


def test_a_state_of_other_settings_is_refused():
    start = flow.initial_field(N, seed=1)
    state = simulation(dt=2e-3).set_vorticity(start).advance(5).state_dict()
    for other, words in ((dict(dt=1e-3), "dt = 0.002, now 0.001"), (dict(dt=2e-3, viscosity=2e-3), "viscosity = 0.001, now 0.002"),
                         (dict(dt=2e-3, closure="smagorinsky"), "closure = none, now smagorinsky"), (dict(dt=2e-3, members=2), "members = 1, now 2")):
        with pytest.raises(ls.InputError, match=words):
            simulation(**other).load_state_dict(state)
    other = simulation(dt=2e-3, viscosity=0.1).load_state_dict(state, strict=False).advance(1).budget()[0]["enstrophy"]
    assert other < simulation(dt=2e-3).set_vorticity(start).advance(6).budget()[0]["enstrophy"]
    same = simulation(dt=2e-3, closure="none").load_state_dict({name: np.array(values) for name, values in state.items()})
    np.testing.assert_array_equal(same.advance(1).vorticity(), simulation(dt=2e-3).set_vorticity(start).advance(6).vorticity())


def test_fractions_of_counts_are_refused():
    for call, words in ((lambda: simulation(members=2.5), "members 2.5"), (lambda: flow.initial_field(16.5), "n 16.5"),
                        (lambda: flow.initial_field(N, seed=1.9), "seed 1.9"), (lambda: flow.Simulation((N, 8.5), dt=1e-3, device=HOST), "n 8.5"),
                        (lambda: flow.encode(fields(2), time=[1, 1], device=HOST), "argument time.*increasing")):
        with pytest.raises(ls.InputError, match=words):
            call()
    assert flow.initial_field(N, seed=2**64 - 1).shape == (N, N)


def test_a_bound_on_the_error_holds(tmp_path):
    given = fields(6)
    encoded = flow.encode(given, max_error=1e-3, device=HOST)
    assert np.abs(encoded.decode() - given).max() <= 1e-3 and encoded.max_error == 1e-3
    assert encoded.write(tmp_path / "z.npz") > 0
    np.testing.assert_array_equal(flow.read(tmp_path / "z.npz", device=HOST).decode(), encoded.decode())
    exact = flow.encode(given, max_error=0.0, device=HOST)
    np.testing.assert_array_equal(flow.decode(exact), given)


@pytest.mark.parametrize("kind", ["f8", "i8"])
def test_the_rounding_to_f32_counts_towards_the_bound(kind):
    x = np.linspace(0, 6, 3 * N * N).reshape(3, N, N)
    given = (1e6 + np.sin(x) if kind == "f8" else 1e9 + 100 * x).astype(kind)
    rounding = np.abs(given - given.astype("f4")).max()
    assert rounding > 1e-2
    for bound in (0.0, rounding / 2, rounding):
        with pytest.raises(ls.InputError, match="by which f32 rounds"):
            flow.encode(given, max_error=bound, device=HOST)
    for share in (1.001, 3):
        found = flow.encode(given, max_error=share * rounding, device=HOST).decode()
        assert np.abs(found.astype("f8") - given).max() <= share * rounding
    assert flow.encode(given / 1e3, device=HOST).decode().shape == given.shape
    with pytest.raises(ls.InputError, match="too large for f32"):
        flow.encode(np.full((1, N, N), 1e39), device=HOST)


def test_masked_and_complex_fields_are_refused():
    ones = np.ones((1, N, N), "f4")
    for wrong, words in ((np.ma.array(ones, mask=np.eye(N)[None]), "masked elements"), (ones * 1j, "complex")):
        with pytest.raises(ls.InputError, match=words + ".*argument fields"):
            flow.encode(wrong, max_error=0, device=HOST)
        with pytest.raises(ls.InputError, match=words + ".*argument vorticity"):
            simulation().set_vorticity(wrong[0])
    flow.encode(np.ma.array(ones), max_error=0, device=HOST)


def test_a_surrogate_learns_a_rotation(tmp_path):
    angle = 0.3 * np.arange(40)
    latents = np.stack([np.cos(angle), np.sin(angle), 0 * angle + 1], 1)
    model = flow.learn(latents, ridge=0.0, method="dmd")
    found = model.rollout(10, device=HOST, precision="f64")
    np.testing.assert_allclose(found, latents[20:30], atol=1e-9)
    np.testing.assert_allclose(np.abs(model.eigenvalues()), 1, atol=1e-9)
    again = flow.Surrogate.from_state_dict(model.state_dict())
    np.testing.assert_array_equal(again.rollout(10, device=HOST, precision="f64", mode="doubling"), found)
    with pytest.raises(ls.InputError, match="argument start"):
        model.rollout(3, np.zeros((1, 5)))
    with pytest.raises(ls.InputError, match="steps 2.7"):
        model.rollout(2.7, device=HOST)
    with pytest.raises(ls.InputError, match=r"a number is not finite at \(0, 0\).*argument start"):
        model.rollout(3, np.full_like(model.last, np.nan), device=HOST)


def test_commands_from_files_to_files(tmp_path):
    told = flow.run(tmp_path / "run", n=N, steps=24, save_every=2, dt=1e-2, format="npz", device=HOST)
    assert told["frames"] == 13 and flow.compare(tmp_path / "run" / "run.npz", tmp_path / "run" / "run.npz")["spectrum_error"] == 0
    flow.encode(tmp_path / "run" / "run.npz", tmp_path / "z.npz", share=0.9999, device=HOST)
    flow.learn(tmp_path / "z.npz", tmp_path / "model.npz", device=HOST)
    flow.rollout(tmp_path / "model.npz", 4, tmp_path / "ahead.npz", device=HOST)
    flow.decode(tmp_path / "ahead.npz", tmp_path / "ahead_fields.npz", device=HOST)
    assert np.load(tmp_path / "ahead_fields.npz")["omega"].shape[-2:] == (N, N)


def test_bad_input_names_the_argument():
    for call, words in ((lambda: simulation(closure="strong"), "argument closure.*smagorinsky"),
                        (lambda: simulation(colour=1), "argument colour"),
                        (lambda: simulation(viscosity="much"), "argument viscosity.*a number"),
                        (lambda: simulation(dt=1e-3, cfl=0.5), "dt and cfl"),
                        (lambda: flow.encode(np.zeros(4, "f4")), "argument fields"),
                        (lambda: flow.encode(np.zeros((2, N, N), "f4"), time=[1.0]), "argument time"),
                        (lambda: flow.encode("run.npz"), "out=FILE"),
                        (lambda: flow.learn(np.zeros((3, 2), "i8")), "rank|f32")):
        with pytest.raises(ls.InputError, match=words):
            call()
