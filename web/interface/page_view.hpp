// States of a running call for the page.
#pragma once

#include <cstdint>

// A state of a minimisation, or how far a call is: iterations or parts done, positions (count, 3) in f32, the cost or all parts.
// 1: continue. By the first the core is suspended until the page has drawn, where gpu_may_wait says that it can be.
extern "C" {
#define LOCKSTEP_PAGE(name) __attribute__((import_module("lockstep"), import_name(#name))) extern
LOCKSTEP_PAGE(draw)
uint32_t lockstep_draw(const float* positions, uint32_t count, uint32_t iterations, double cost);
LOCKSTEP_PAGE(frame)
uint32_t lockstep_frame(const float* positions, uint32_t count, uint32_t iterations, double cost);
LOCKSTEP_PAGE(gpu_may_wait) uint32_t lockstep_may_wait();
#undef LOCKSTEP_PAGE
}
