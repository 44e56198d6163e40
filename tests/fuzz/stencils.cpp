#include "stencils.hpp"

#include <algorithm>

#include "data.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::fuzz {

namespace {

constexpr uint64_t kSalt = 0x57e4c115;

/// The body of one kernel: values read around the point, and what becomes of them.
template <int N>
class Body {
 public:
  Body(Random& random, const At<N>& at, int extra) : random_(random), at_(at), extra_(extra) {
    rule_ = Boundary(random_.below(4));
    star_ = N > 1 && random_.chance(70);
    cross_ = star_ || random_.chance(60);
  }

  template <class T>
  Val<T> read(const Grid<T, N>& grid) {
    const bool own_rule = !star_ && random_.chance(15);
    const Boundary rule = own_rule ? Boundary(random_.below(4)) : rule_;
    const auto shift = [&](int most) {
      return rule == Boundary::unchecked ? random_.below(std::min(most, extra_) + 1)
                                         : random_.below(2 * most + 1) - most;
    };
    const int axis = cross_ ? random_.below(N) : N, far = star_ || random_.chance(70) ? 1 : 5;
    Position<N> p = at_;
    if (axis == 0 || axis == N) p = p.x(shift(far));
    if constexpr (N > 1)
      if (axis == 1 || axis == N) p = p.y(shift(1));
    if constexpr (N > 2)
      if (axis == 2 || axis == N) p = p.z(shift(2));
    return grid.with(rule)[p];
  }
  bool is_star() const { return star_; }
  /// The next neighbours, each one or none.
  void star(const Grid<f32, N>& grid, std::vector<Val<f32>>& values) {
    if (!star_ || (rule_ == Boundary::unchecked && extra_ == 0)) return;
    const auto read = [&](const auto& axis) {
      for (const int step : {1, -1})
        if ((step > 0 || rule_ != Boundary::unchecked) && random_.chance(85)) {
          values.push_back(grid.with(rule_)[axis(step)]);
          values.push_back(combine(values.back(), random_.of(values), random_.of(values)));
        }
    };
    read(at_.x);
    if constexpr (N > 1) read(at_.y);
    if constexpr (N > 2) read(at_.z);
  }
  Val<f32> combine(const Val<f32>& a, const Val<f32>& b, const Val<f32>& c) {
    switch (random_.below(8)) {
      case 0: return a * b;
      case 1: return a - b;
      case 2: return fma(a, b, c);
      case 3: return a * b + c;
      case 4: return min(a, b);
      case 5: return select(a < b, c, a);
      case 6: return a / (abs(b) + 1.0f);
      default: return a + b;
    }
  }

 private:
  Random& random_;
  At<N> at_;
  int extra_;
  Boundary rule_;
  bool star_;   // as most stencils of models: one rule, next neighbours
  bool cross_;  // along one axis at a time
};

template <int N>
Kernel traced(Random& random, const std::string& name, int extra) {
  return kernel(name, [&](At<N> at, Grid<f32, N> a, Grid<f32, N> b, Grid<i32, N> c, Grid<f64, N> d,
                          Grid<f32, 1> row, Out<f32, N> out, Out<i32, N> whole, Param<f32> p, Param<i32> n) {
    Body<N> body(random, at, extra);
    std::vector<Val<f32>> values{a[at], Val<f32>(p)};
    Val<i32> count = cast<i32>(at.x) + n;
    body.star(a, values);
    const int reads = body.is_star() ? 1 + random.below(3) : 1 + random.below(random.chance(80) ? 7 : 16);
    for (int k = 0; k < reads; ++k) {
      const int which = random.below(body.is_star() ? 15 : 20);
      if (which < 12) values.push_back(body.read(a));
      if (which >= 12 && which < 15) values.push_back(body.read(b));
      if (which >= 15 && which < 17) count = (count ^ body.read(c)) + cast<i32>(at.x);
      if (which == 17) values.push_back(cast<f32>(body.read(d)));
      if (which == 18) values.push_back(row(count & 7));
      if (which == 19) values.push_back(row(Val<i32>(at.x)) * cast<f32>(Val<i32>(at.x)));
      values.push_back(body.combine(values.back(), random.of(values), random.of(values)));
    }
    out[at] = values.back();
    whole[at] = random.chance(50) ? count : select(values[2] < values.back(), count, Val<i32>(n));
  });
}

}  // namespace

bool draws_stencil(const Recipe& recipe) {
  return recipe.profile == Profile::full && recipe.flaw == Flaw::none &&
         Random(recipe.seed ^ kSalt).below(8) == 0;
}

Program stencil(const Recipe& recipe) {
  Random random(recipe.seed ^ kSalt ^ 1);
  Program p;
  p.stencil = true;
  const int rank = 1 + random.below(3), extra = random.below(3) ? 0 : 1 + random.below(5);
  const std::string name = "fuzz." + std::to_string(recipe.seed);
  const Kernel k = rank == 1   ? traced<1>(random, name, extra)
                   : rank == 2 ? traced<2>(random, name, extra)
                               : traced<3>(random, name, extra);
  p.function = k.function(random.chance(25) ? Type::i64 : Type::i32);
  for (int a = 0; a < rank; ++a) p.extent[size_t(a)] = 1 + random.below(a ? 7 : rank == 1 ? 1100 : 300);
  if (random.chance(50)) p.extent[0] = (p.extent[0] + 3) / 4 * 4;
  const bool whole = random.chance(60);  // rows of multiples of four elements, from the buffer's beginning
  for (const ir::BufferParam& buffer : p.function.buffers) {
    View v;
    const bool line = buffer.rank == 1 && rank > 1;
    int64_t stride = 1;
    for (int a = buffer.rank - 1; a >= 0; --a) {
      const int64_t extent = line ? p.extent[0] : p.extent[size_t(buffer.rank - 1 - a)];
      v.shape[size_t(a)] = std::max<int64_t>(extent, 8) + extra;
      v.strides[size_t(a)] = stride;
      stride *= v.shape[size_t(a)] + (whole || random.chance(50) ? 0 : random.below(6));
      if (whole && a == buffer.rank - 1) stride = (stride + 3) / 4 * 4;
    }
    v.offset = whole || random.chance(40) ? 0 : random.below(9);
    p.views.push_back(v);
    p.buffers.push_back(random_data(random, buffer.storage, v.offset + stride, false));
  }
  for (const ir::ScalarParam& s : p.function.scalars) p.scalars.push_back(random_bits(random, s.type, false));
  return p;
}

}  // namespace lockstep::fuzz
