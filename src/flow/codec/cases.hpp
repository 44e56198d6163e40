#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::flow {

/// flow.codec.*
void add_codec_cases(CaseRegistry& registry);
/// flow.codec.rans.*, flow.codec.residual.*; the former adds them.
void add_coded_cases(CaseRegistry& registry);

}  // namespace lockstep::flow
