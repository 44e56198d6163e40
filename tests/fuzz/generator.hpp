// Random valid kernels: every operation and type, calls of random functions, nested divergent control flow, local and shared arrays,
// barriers, reductions, atomics with results that do not depend on order. Every access is in bounds, every
// datum is written before it is read, and no two lanes race; the interpreter confirms it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ir/function.hpp"
#include "lockstep/types.hpp"

namespace lockstep::fuzz {

enum class Profile : uint8_t {
  full,   // all types; results compare bit by bit
  webgpu  // 32-bit types; floats stay small whole numbers, so that every device computes them exactly
};

/// A fault made on purpose; the interpreter has to find it.
enum class Flaw : uint8_t {
  none,
  axis,    // a coordinate beyond its axis, at an offset inside the buffer
  promise  // uniform() of a value on which lanes differ
};

struct Recipe {
  uint64_t seed = 0;
  Profile profile = Profile::full;
  int bodies = 1;       // independent random bodies in one kernel
  int statements = 40;  // budget of one body
  bool math = false;    // elementary functions too
  Flaw flaw = Flaw::none;
};

/// How a buffer is bound: the part of it that the kernel sees, slowest axis first.
struct View {
  std::array<int64_t, 4> shape{}, strides{};  // elements
  int64_t offset = 0;                         // elements
};

/// A kernel with everything a launch needs.
struct Program {
  ir::Function function;
  std::array<int64_t, 3> extent{1, 1, 1};     // points or groups, x first
  std::vector<std::vector<uint8_t>> buffers;  // first contents, by buffer parameter
  std::vector<uint64_t> scalars;
  std::vector<View> views;  // by buffer parameter; empty: whole buffers of shape_of
  bool stencil = false;
};

Program generate(const Recipe& recipe);
/// How a buffer of so many elements is bound: axes of 2 before a last one of kColumns where the rank is above 1.
inline constexpr int kColumns = 8;
Shape shape_of(int rank, int64_t elements);

/// splitmix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int below(int n) { return int(next() % uint64_t(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class List>
  auto& of(List& list) {
    return list[size_t(below(int(list.size())))];
  }

 private:
  uint64_t state_;
};

}  // namespace lockstep::fuzz
