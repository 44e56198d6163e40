#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "checks.hpp"
#include "../fuzz/runner.hpp"
#include "ir/meaning.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::web_tests {

namespace {

using namespace ir;

void nothing_yet() {}

}  // namespace

void operations() { nothing_yet(); }

}  // namespace lockstep::web_tests
