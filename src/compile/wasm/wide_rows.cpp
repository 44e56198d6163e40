#include "compile/wasm/wide_rows.hpp"

namespace lockstep::compile::wasm {

namespace {

/// 32-bit words of x (0 to 3) and y (4 to 7).
Local words(Builder& b, const Local& x, const Local& y, std::array<uint8_t, 4> which) {
  std::array<uint8_t, 16> bytes{};
  for (size_t k = 0; k < 16; ++k) bytes[k] = uint8_t(4 * which[k / 4] + k % 4);
  b.body().get(x), b.body().get(y);
  b.body().shuffle(bytes);
  const Local r = b.body().local(Kind::v128);
  b.body().set(r);
  return r;
}
Local low_halves(Builder& b, const Local& x, const Local& y) { return words(b, x, y, {0, 1, 4, 5}); }
Local high_halves(Builder& b, const Local& x, const Local& y) { return words(b, x, y, {2, 3, 6, 7}); }
Local low_merged(Builder& b, const Local& x, const Local& y) { return words(b, x, y, {0, 4, 1, 5}); }
Local high_merged(Builder& b, const Local& x, const Local& y) { return words(b, x, y, {2, 6, 3, 7}); }

/// Rows and columns of 32-bit words exchanged.
std::vector<Local> transposed(Builder& b, const std::vector<Local>& v) {
  const Local a = low_merged(b, v[0], v[1]), c = high_merged(b, v[0], v[1]), d = low_merged(b, v[2], v[3]),
              e = high_merged(b, v[2], v[3]);
  return {low_halves(b, a, d), high_halves(b, a, d), low_halves(b, c, e), high_halves(b, c, e)};
}

Value lanes(Type type, const Local& first, const Local& second = {}) {
  return {type, true, false, 0, {first, second}};
}

Local part(Builder& b, const Value& x, size_t k) {
  if (!x.constant) return x.part[k];
  const Local local = b.body().local(Kind::v128);
  b.push(x, int(k));
  b.body().set(local);
  return local;
}

}  // namespace

std::vector<Value> components_of(Builder& b, Type type, int components, const std::vector<Local>& memory) {
  std::vector<Value> all;
  if (is_wide(type)) {
    // Halves of two lanes' vectors; with 4 components a lane has two vectors.
    const size_t each = size_t(components / 2);
    for (size_t k = 0; k < size_t(components); ++k) {
      std::array<Local, 2> parts;
      for (size_t p = 0; p < 2; ++p) {
        const Local &x = memory[2 * p * each + k / 2], &y = memory[(2 * p + 1) * each + k / 2];
        parts[p] = k % 2 == 0 ? low_halves(b, x, y) : high_halves(b, x, y);
      }
      all.push_back(lanes(type, parts[0], parts[1]));
    }
  } else if (components == 4) {
    for (const Local& one : transposed(b, memory)) all.push_back(lanes(type, one));
  } else {
    all = {lanes(type, words(b, memory[0], memory[1], {0, 2, 4, 6})),
           lanes(type, words(b, memory[0], memory[1], {1, 3, 5, 7}))};
  }
  return all;
}

std::vector<Local> memory_of(Builder& b, const std::vector<Value>& components) {
  const auto of = [&](size_t k, size_t p) { return part(b, components[k], p); };
  if (components[0].wide()) {
    std::vector<Local> memory;
    for (size_t lane = 0; lane < size_t(kLanes); ++lane)
      for (size_t k = 0; k < components.size(); k += 2) {
        const Local x = of(k, lane / 2), y = of(k + 1, lane / 2);
        memory.push_back(lane % 2 == 0 ? low_halves(b, x, y) : high_halves(b, x, y));
      }
    return memory;
  }
  if (components.size() == 4) return transposed(b, {of(0, 0), of(1, 0), of(2, 0), of(3, 0)});
  const Local x = of(0, 0), y = of(1, 0);
  return {low_merged(b, x, y), high_merged(b, x, y)};
}

}  // namespace lockstep::compile::wasm
