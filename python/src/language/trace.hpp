// Includes for the parts that see the IR while Python traces a kernel.
#pragma once

#include "ir/bindings.hpp"
#include "lockstep/ir/builder.hpp"
#include "lockstep/ir/function.hpp"
#include "lockstep/kernel/dynamic.hpp"
