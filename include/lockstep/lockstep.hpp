// Everything a user of Lockstep needs.
#pragma once

#include "lockstep/case.hpp"
#include "lockstep/context.hpp"
#include "lockstep/device.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/math.hpp"
#include "lockstep/primitives.hpp"
#include "lockstep/types.hpp"
#include "lockstep/urban.hpp"
#include "lockstep/vec.hpp"
