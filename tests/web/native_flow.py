"""Prints digests of the native program's turbulence as JSON; turbulence.test.mjs compares those of the page."""
import hashlib
import json

import numpy as np
from lockstep import flow

common = dict(device="cpu", precision="f32", closure="smagorinsky", cfl=0.8)
forced = dict(common, viscosity=1e-4, drag=0.05, forcing="stochastic", forcing_wavenumber=8, forcing_amount=0.01, forcing_seed=7)


def digest(simulation):
    return hashlib.sha256(np.asarray(simulation.vorticity()).tobytes()).hexdigest()


random = flow.Simulation(64, **forced)
random.set_vorticity(flow.initial_field(64, "mcwilliams", seed=7))
random.advance(25)
found = {"random": digest(random), "time": float(random.times[0])}
another = flow.Simulation(64, **{**forced, "forcing_seed": 9})
another.set_vorticity(flow.initial_field(64, "mcwilliams", seed=7))
another.advance(10)
found["another forcing"] = digest(another)
thicker = flow.Simulation(64, **{**forced, "viscosity": 1e-2})
thicker.load_state_dict(random.state_dict(), strict=False)
thicker.advance(5)
found["changed"] = digest(thicker)
shear = flow.Simulation((48, 96), device="cpu", precision="f32", viscosity=1e-3, closure="leith", dt=5e-3, integrator="etdrk4",
                        forcing="kolmogorov", forcing_wavenumber=4, forcing_amount=0.2)
shear.set_vorticity(flow.initial_field((48, 96), "shear"))
shear.advance(25)
found["shear"] = digest(shear)
print(json.dumps(found))
