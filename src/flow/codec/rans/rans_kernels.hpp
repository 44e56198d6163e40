#pragma once

#include "lockstep/kernel.hpp"

namespace lockstep::flow {

struct RansKernels {
  static const Kernel& keys();    // kTokens context + token of each number
  static const Kernel& slots();   // token, first slot and frequency of each slot
  static const Kernel& encode();  // one lane a tile
  static const Kernel& pack();    // the lanes' words one behind the other
  static const Kernel& decode();
};

}  // namespace lockstep::flow
