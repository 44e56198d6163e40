// Everything a user of Lockstep needs.
#pragma once

#include "lockstep/array.hpp"
#include "lockstep/autodiff.hpp"
#include "lockstep/autodiff/geometry.hpp"
#include "lockstep/context.hpp"
#include "lockstep/device.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/kernel/math.hpp"
#include "lockstep/kernel/vec.hpp"
#include "lockstep/pde.hpp"
#include "lockstep/pde/examples.hpp"
#include "lockstep/primitives.hpp"
#include "lockstep/solve.hpp"
#include "lockstep/types.hpp"
#include "lockstep/urban.hpp"
#include "lockstep/verify.hpp"
