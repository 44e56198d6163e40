// Everything a user of Lockstep needs.
#pragma once

#include "lockstep/autodiff.hpp"
#include "lockstep/autodiff_geometry.hpp"
#include "lockstep/case.hpp"
#include "lockstep/context.hpp"
#include "lockstep/device.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/math.hpp"
#include "lockstep/pde.hpp"
#include "lockstep/pde_examples.hpp"
#include "lockstep/primitives.hpp"
#include "lockstep/solve.hpp"
#include "lockstep/types.hpp"
#include "lockstep/urban.hpp"
#include "lockstep/vec.hpp"
