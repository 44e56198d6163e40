#include "optimize/lbfgs/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cached_kernel.hpp"
#include "optimize/lbfgs/trace.hpp"

namespace lockstep::optimize {
namespace {

using namespace lbfgs;
constexpr int64_t kMostChunks = 264;
constexpr int kUnrolledPairs = 12;         // pairs whose coefficients stay in registers
constexpr int64_t kMostCached = 12 << 10;  // bytes of products in shared memory

/// Sums of each value over the lanes, by columns of 32 and of 8; lane k gives the k-th to `put(k, sum)`. At
/// most 32 values. Cheaper than a group_sum for each.
template <class A, class Put>
void sum_over_lanes(const Val<i32>& lane, const std::vector<Var<A>>& values, Put put) {
  constexpr int kRows = kLanes / 32;
  const int count = int(values.size());
  SharedArray<A> tile(kRows * kLanes), columns(count * 32), rest(count * 8);
  const Val<i32> row = lane / 32, column = lane % 32;
  for (int first = 0; first < count; first += kRows) {
    const int rows = std::min(kRows, count - first);
    for (int r = 0; r < rows; ++r) tile[lane + r * kLanes] = Val<A>(values[size_t(first + r)]);
    barrier();
    if_(row < rows, [&] {
      Val<A> sum = tile[row * kLanes + column];
      for (int k = 32; k < kLanes; k += 32) sum = sum + tile[row * kLanes + column + k];
      columns[(row + first) * 32 + column] = sum;
    });
    barrier();
  }
  if_(lane < count * 8, [&] {
    const Val<i32> at = lane / 8 * 32 + lane % 8;
    rest[lane] = (columns[at] + columns[at + 8]) + (columns[at + 16] + columns[at + 24]);
  });
  barrier();
  if_(lane < count, [&] {
    Val<A> sum = rest[lane * 8];
    for (int k = 1; k < 8; ++k) sum = sum + rest[lane * 8 + k];
    put(lane, sum);
  });
}

// ── coefficients ──

/// Places of the products of two slots' vectors in the memory.
struct ProductPlaces {
  int head, slots;
  Val<i32> sy(const Val<i32>& a, const Val<i32>& b) const { return head + a * slots + b; }
  Val<i32> yy(const Val<i32>& a, const Val<i32>& b) const { return sy(a, b) + slots * slots; }
};

/// Writes the products of the newest pair and the state for the next call.
template <class A>
void keep_products(const ProductPlaces& at, const Taken<A>& taken, const Val<i32>& lane, int lanes,
                   const Grid<A, 1>& numbers, const InOut<A, 1>& memory) {
  const Val<i32>& pending = taken.pending;
  if_(taken.kept, [&] {
    for_(lane, taken.older, lanes, [&](Val<i32> k) {
      const Val<i32> other = before(pending, k + 1, at.slots), row = kLbfgsOlder + 5 * k;
      memory[at.sy(other, pending)] = numbers[row + 2];
      memory[at.yy(other, pending)] = numbers[row + 3];
      memory[at.yy(pending, other)] = numbers[row + 3];
      memory[at.sy(pending, other)] = numbers[row + 4];
    });
  });
  if_(lane == 0, [&] {
    if_(taken.kept, [&] {
      memory[at.sy(pending, pending)] = taken.sy;
      memory[at.yy(pending, pending)] = taken.yy;
    });
    memory[kSlot] = cast<A>(taken.next);
    memory[kPairs] = cast<A>(taken.pairs);
  });
}

template <class A>
void trace_coefficients(const LbfgsLayout& l, const Group<1>& g, const Grid<A, 1>& numbers,
                        const InOut<A, 1>& memory, const Out<A, 1>& coefficients) {
  const int m = l.history, slots = l.slots(), lanes = g.lanes();
  const Val<i32> lane = g.lane();
  const ProductPlaces at{l.head(), slots};

  const Taken<A> taken = take<A>(l, numbers, memory);
  const Val<bool>& kept = taken.kept;
  const Val<i32>&pairs = taken.pairs, &next = taken.next;
  const Val<i32> more = pairs - taken.older;
  barrier();
  keep_products<A>(at, taken, lane, lanes, numbers, memory);
  barrier();

  // By age from here on: 0 is the newest pair.
  const bool cached = int64_t(2) * m * m * int64_t(sizeof(A)) <= kMostCached;
  SharedArray<A> cache(cached ? 2 * m * m : 1);
  const auto slot_of = [&](const Val<i32>& age) { return before(next, age + 1, slots); };
  if (cached)
    for_(lane, m * m, lanes, [&](Val<i32> k) {
      const Val<i32> a = slot_of(k / m), b = slot_of(k % m);
      cache[k] = memory[at.sy(a, b)];
      cache[k + m * m] = memory[at.yy(a, b)];
    });
  const auto s_y = [&](const Val<i32>& i, const Val<i32>& j) -> Val<A> {
    return cached ? Val<A>(cache[i * m + j]) : Val<A>(memory[at.sy(slot_of(i), slot_of(j))]);
  };
  const auto y_y = [&](const Val<i32>& i, const Val<i32>& j) -> Val<A> {
    return cached ? Val<A>(cache[i * m + j + m * m]) : Val<A>(memory[at.yy(slot_of(i), slot_of(j))]);
  };
  SharedArray<A> p(m), q(m);  // s_i and y_i times the vector of the loop
  SharedArray<A> alpha(m), change(m), inverse(m);
  const Val<A> none = A(0), one = A(1);
  for_(lane, m, lanes, [&](Val<i32> age) {
    const Val<bool> is_new = kept && age == 0;
    const Val<i32> row = kLbfgsOlder + 5 * min(max(age - more, Val<i32>(0)), Val<i32>(std::max(m - 2, 0)));
    const Val<bool> used = age < pairs;
    p[age] = select(used, select(is_new, numbers[kLbfgsGS], numbers[row]), none);
    q[age] = select(used, select(is_new, numbers[kLbfgsYWG], numbers[row + 1]), none);
    const Val<i32> own = slot_of(age);
    inverse[age] = select(used, one / select(used, Val<A>(memory[at.sy(own, own)]), one), none);
  });
  barrier();
  for_(0, m, [&](Val<i32> j) {
    const Val<A> a = p[j] * inverse[j];
    for_(lane, pairs, lanes, [&](Val<i32> i) {
      if_(i > j, [&] { p[i] = fma(-a, s_y(i, j), Val<A>(p[i])); });
      q[i] = fma(-a, y_y(i, j), Val<A>(q[i]));
    });
    if_(lane == 0, [&] { alpha[j] = a; });
    barrier();
  });
  const Val<bool> any = pairs > 0;
  const Val<i32> newest = 0;
  const Val<A> gamma = select(any, s_y(newest, newest) / select(any, y_y(newest, newest), one), one);
  for_(lane, m, lanes, [&](Val<i32> i) { q[i] = gamma * Val<A>(q[i]); });
  barrier();
  for_(0, m, [&](Val<i32> turn) {
    const Val<i32> j = m - 1 - turn;
    const Val<A> c = fma(-Val<A>(q[j]), Val<A>(inverse[j]), Val<A>(alpha[j]));
    for_(lane, min(j, pairs), lanes, [&](Val<i32> i) { q[i] = fma(c, s_y(j, i), Val<A>(q[i])); });
    if_(lane == 0, [&] { change[j] = c; });
    barrier();
  });
  for_(lane, m, lanes, [&](Val<i32> age) {
    coefficients[1 + 2 * age] = -Val<A>(change[age]);
    coefficients[2 + 2 * age] = gamma * Val<A>(alpha[age]);
  });
  if_(lane == 0, [&] {
    // Without pairs the first step has length 1 at most, unless a diagonal scales it.
    const Val<A> length = sqrt(numbers[kLbfgsGWG]);
    coefficients[0] = select(any, -gamma, l.scaled ? -one : -min(one, one / length));
  });
}

template <class A>
Kernel coefficients_kernel(const LbfgsLayout& l) {
  return kernel(named<A, A>(l, "coefficients"),
                [l](Group<1> g, Grid<A, 1> numbers, InOut<A, 1> memory, Out<A, 1> coefficients) {
                  trace_coefficients<A>(l, g, numbers, memory, coefficients);
                },
                {{32, 1, 1}, 0});
}

// ── direction ──

template <class T, class A>
struct DirectionTrace {
  LbfgsLayout l;
  Group<1> g;
  Grid<T, 1> gradient, diagonal;
  Grid<T, 2> s, y;
  Grid<A, 1> memory, coefficients;
  Out<T, 1> step;
  Out<A, 2> partial;
  Val<i32> length;

  struct Term {
    Val<i32> row;
    Val<A> s, y;
  };

  void operator()() const {
    const Val<i32> next = uniform(index_of<A>(memory[kSlot])), pairs = uniform(index_of<A>(memory[kPairs]));
    // A missing pair has coefficients 0 and shows the newest one.
    const auto term = [&](const Val<i32>& age) {
      return Term{uniform(before(next, select(age < pairs, age, Val<i32>(0)) + 1, l.slots())),
                  uniform(coefficients[1 + 2 * age]), uniform(coefficients[2 + 2 * age])};
    };
    const bool unrolled = l.history <= kUnrolledPairs;
    std::vector<Term> terms;
    for (int k = 0; unrolled && k < l.history; ++k) terms.push_back(term(Val<i32>(k)));
    const Val<A> own = uniform(coefficients[0]);
    Var<A> slope = A(0);
    const auto finish = [&](const Val<i32>& at, const Val<T>& g_at, const Val<A>& scaled,
                            const Val<A>& plain) {
      const Val<A> sum = l.scaled ? fma(scaled, inverse_scale<T, A>(diagonal[at]), plain) : scaled + plain;
      const Val<T> d = cast<T>(sum);
      step[at] = d;
      slope = fma(cast<A>(g_at), cast<A>(d), Val<A>(slope));
    };
    const auto by_gradient = [&](const Val<i32>& first, int count) {
      for (int u = 0; u < count; ++u) {
        const Val<T> g_at = gradient[first + u * kLanes];
        finish(first + u * kLanes, g_at, own * cast<A>(g_at), Val<A>(A(0)));
      }
    };
    const auto by_terms = [&](const Val<i32>& first, int count) {
      std::vector<Val<T>> g_at, s_at, y_at;  // all loads first, so that they overlap
      for (int u = 0; u < count; ++u) {
        const Val<i32> at = first + u * kLanes;
        g_at.push_back(gradient[at]);
        for (const Term& t : terms) s_at.push_back(s(t.row, at)), y_at.push_back(y(t.row, at));
      }
      size_t k = 0;
      for (int u = 0; u < count; ++u) {
        Val<A> scaled = own * cast<A>(g_at[size_t(u)]), plain = A(0);
        for (const Term& t : terms) {
          plain = fma(t.s, cast<A>(s_at[k]), plain);
          scaled = fma(t.y, cast<A>(y_at[k++]), scaled);
        }
        finish(first + u * kLanes, g_at[size_t(u)], scaled, plain);
      }
    };
    const auto by_loop = [&](const Val<i32>& first, int count) {
      for (int u = 0; u < count; ++u) {
        const Val<i32> at = first + u * kLanes;
        const Val<T> g_at = gradient[at];
        Var<A> scaled = own * cast<A>(g_at), plain = A(0);
        for_(Val<i32>(0), pairs, [&](Val<i32> age) {
          const Term t = term(age);
          plain = fma(t.s, cast<A>(s(t.row, at)), Val<A>(plain));
          scaled = fma(t.y, cast<A>(y(t.row, at)), Val<A>(scaled));
        });
        finish(at, g_at, scaled, plain);
      }
    };
    const auto pass = [&](const auto& turn) {
      over_chunk<kRolled<A>>(g.id(), g.lane(), length, gradient.size(0), LbfgsLayout::kDirectionUnroll, turn);
    };
    if_(
        pairs > 0,
        [&] {
          if (unrolled)
            pass(by_terms);
          else
            pass(by_loop);
        },
        [&] { pass(by_gradient); });
    const Val<A> total = group_sum(Val<A>(slope));
    if_(g.lane() == 0, [&] { partial(kLbfgsStartSlope - kLbfgsFirstRow, g.id()) = total; });
  }
};

template <class T, class A>
Kernel direction_kernel(const LbfgsLayout& l) {
  return kernel(
      named<T, A>(l, "direction"),
      [l](Group<1> g, Grid<T, 1> gradient, Grid<T, 1> diagonal, Grid<T, 2> s, Grid<T, 2> y, Grid<A, 1> memory,
          Grid<A, 1> coefficients, Out<T, 1> step, Out<A, 2> partial, Param<i32> length) {
        DirectionTrace<T, A>{l, g, gradient, diagonal, s, y, memory, coefficients, step, partial, length}();
      },
      {{kLanes, 1, 1}, 0});
}

// ── products ──

template <class T, class A>
struct ProductsTrace {
  static constexpr int kOwn = kLbfgsGradientMax - kLbfgsSS, kMany = LbfgsLayout::kPairsOfGroup;
  static_assert(kOwn + 5 * kMany <= 32, "a row of columns for each sum");
  LbfgsLayout l;
  LbfgsPass pass;
  Group<2> g;
  Grid<T, 1> gradient, earlier, step, diagonal;
  InOut<T, 2> s, y;
  Grid<A, 1> memory;
  Out<A, 2> partial;
  Val<i32> length;

  struct Loaded {
    Val<T> g, s, y, d;  // y: the earlier gradient unless the pair is stored
    std::vector<Val<T>> older_s, older_y;
  };

  /// Sums of products, in variables. Those of f32 are in an array, so that a loop has one fma: software adapters take minutes
  /// to compile six in a row.
  class Sums {
   public:
    explicit Sums(size_t count) : count_(int(count)) {
      for (int k = 0; k < count_ && !kRolled<A>; ++k) sums_.emplace_back(A(0));
      if constexpr (kRolled<A>) {
        for (std::optional<LocalArray<A>>* array : {&a_, &b_, &totals_}) array->emplace(count_);
        for (int k = 0; k < count_; ++k) (*totals_)[k] = A(0);
      }
    }
    void add(const std::vector<std::pair<Val<A>, Val<A>>>& products) {
      for (int k = 0; k < count_; ++k) {
        const auto& [a, b] = products[size_t(k)];
        if constexpr (kRolled<A>)
          (*a_)[k] = a, (*b_)[k] = b;
        else
          sums_[size_t(k)] = fma(a, b, Val<A>(sums_[size_t(k)]));
      }
      if constexpr (kRolled<A>)
        for_(0, count_, [&](Val<i32> k) {
          (*totals_)[k] = fma(Val<A>((*a_)[k]), Val<A>((*b_)[k]), Val<A>((*totals_)[k]));
        });
    }
    const std::vector<Var<A>>& values() {
      if constexpr (kRolled<A>)
        for (int k = 0; k < count_; ++k) sums_.emplace_back(Val<A>((*totals_)[k]));
      return sums_;
    }

   private:
    int count_;
    std::vector<Var<A>> sums_;
    std::optional<LocalArray<A>> a_, b_, totals_;
  };

  void operator()() const {
    const Val<i32> part = g.id(0), chunk = g.id(1);
    const Val<i32> own = uniform(index_of<A>(memory[kSlot])), pairs = uniform(index_of<A>(memory[kPairs]));
    const Val<bool> first_part = part == 0;
    // A missing pair is read from a slot that nobody writes; its products are read by nobody.
    std::vector<Val<i32>> rows;
    const bool stored = pass == LbfgsPass::stored;
    for (int k = 0; k < kMany && l.by_products() && pass != LbfgsPass::probe; ++k) {
      const Val<i32> age = part * kMany + k;
      rows.push_back(uniform(before(own, select(age < pairs, age + 1, Val<i32>(l.history)), l.slots())));
    }
    const size_t count = kOwn + 5 * rows.size();
    Sums sums(count);
    Var<T> largest = T(0);

    const auto load = [&](const Val<i32>& at) {
      Loaded v{gradient[at],
               stored ? Val<T>(s(own, at)) : step[at],
               stored ? Val<T>(y(own, at)) : earlier[at],
               l.scaled ? diagonal[at] : Val<T>(T(1)),
               {},
               {}};
      for (const Val<i32>& row : rows) {
        v.older_s.push_back(Val<T>(s(row, at)));
        v.older_y.push_back(Val<T>(y(row, at)));
      }
      return v;
    };
    const auto take = [&](const Loaded& v, const Val<i32>& at) {
      const Val<T> change = stored ? v.y : v.g - v.y;
      if (pass == LbfgsPass::trial)
        if_(first_part, [&] {
          s(own, at) = v.s;
          y(own, at) = change;
        });
      const Val<A> g_at = cast<A>(v.g), s_at = cast<A>(v.s), y_at = cast<A>(change);
      const Val<A> w = l.scaled ? inverse_scale<T, A>(v.d) : Val<A>(A(1));
      const Val<A> wg = l.scaled ? g_at * w : g_at, wy = l.scaled ? y_at * w : y_at;
      std::vector<std::pair<Val<A>, Val<A>>> products;
      const auto add = [&](const Val<A>& a, const Val<A>& b) { products.emplace_back(a, b); };
      add(s_at, s_at), add(g_at, s_at), add(y_at, s_at), add(g_at, wg), add(y_at, wy), add(y_at, wg);
      largest = max(Val<T>(largest), abs(v.g));
      for (size_t r = 0; r < rows.size(); ++r) {
        const Val<A> older_s = cast<A>(v.older_s[r]), older_y = cast<A>(v.older_y[r]);
        add(g_at, older_s), add(wg, older_y), add(y_at, older_s), add(wy, older_y), add(s_at, older_y);
      }
      sums.add(products);
    };
    over_chunk<kRolled<A>>(chunk, g.lane(), length, gradient.size(0), LbfgsLayout::kProductsUnroll,
                           [&](const Val<i32>& first, int turns) {
                             std::vector<Loaded> loaded;  // all loads first, so that they overlap
                             for (int u = 0; u < turns; ++u) loaded.push_back(load(first + u * kLanes));
                             for (int u = 0; u < turns; ++u) take(loaded[size_t(u)], first + u * kLanes);
                           });

    sum_over_lanes<A>(g.lane(), sums.values(), [&](const Val<i32>& k, const Val<A>& total) {
      if_(
          k < kOwn,
          [&] { if_(first_part, [&] { partial(k + (kLbfgsSS - kLbfgsFirstRow), chunk) = total; }); },
          [&] { partial(part * (5 * kMany) + k + (kLbfgsOlder - kLbfgsFirstRow - kOwn), chunk) = total; });
    });
    if_(first_part, [&] {
      const Val<A> most = cast<A>(group_max(Val<T>(largest)));
      if_(g.lane() == 0, [&] { partial(kLbfgsGradientMax - kLbfgsFirstRow, chunk) = most; });
    });
  }
};

template <class T, class A>
Kernel products_kernel(const LbfgsLayout& l, LbfgsPass pass) {
  static constexpr const char* kVariants[] = {"", ".stored", ".probe"};
  return kernel(
      named<T, A>(l, "products", kVariants[int(pass)]),
      [l, pass](Group<2> g, Grid<T, 1> gradient, Grid<T, 1> earlier, Grid<T, 1> step, Grid<T, 1> diagonal,
                InOut<T, 2> s, InOut<T, 2> y, Grid<A, 1> memory, Out<A, 2> partial, Param<i32> length) {
        ProductsTrace<T, A>{l, pass, g, gradient, earlier, step, diagonal, s, y, memory, partial, length}();
      },
      {{kLanes, 1, 1}, 0});
}

// ── sums ──

template <class T, class A>
Kernel squares_kernel(bool masked) {
  return kernel(fmt::format("optimize.lbfgs.squares.{}.{}{}", name(lockstep::detail::kType<T>),
                            name(lockstep::detail::kType<A>), masked ? ".masked" : ""),
                [masked](Group<1> g, Grid<T, 1> x, Grid<T, 1> mask, Out<A, 2> partial, Param<i32> length) {
                  Var<A> sum = A(0);
                  over_chunk<kRolled<A>>(g.id(), g.lane(), length, x.size(0), LbfgsLayout::kProductsUnroll,
                                         [&](const Val<i32>& first, int count) {
                                           for (int u = 0; u < count; ++u) {
                                             const Val<i32> at = first + u * kLanes;
                                             const Val<A> v = cast<A>(masked ? x[at] * mask[at] : x[at]);
                                             sum = fma(v, v, Val<A>(sum));
                                           }
                                         });
                  const Val<A> total = group_sum(Val<A>(sum));
                  if_(g.lane() == 0, [&] { partial(kLbfgsStateSquare - kLbfgsFirstRow, g.id()) = total; });
                },
                {{kLanes, 1, 1}, 0});
}

template <class T>
Kernel step_kernel() {
  return kernel(
      fmt::format("optimize.lbfgs.step.{}", name(lockstep::detail::kType<T>)),
      [](At<1> at, Grid<T, 1> direction, Out<T, 1> step, Param<T> t) { step[at] = t * direction[at]; });
}

template <class T, class S>
Kernel accept_kernel() {
  return kernel(fmt::format("optimize.lbfgs.accept.{}.{}", name(lockstep::detail::kType<T>),
                            name(lockstep::detail::kType<S>)),
                [](Group<1> g, Grid<T, 1> gradient, Out<T, 1> earlier, Grid<S, 1> candidate, Out<S, 1> state,
                   Param<i32> length) {
                  const auto copy = [&](const auto& from, const auto& to) {
                    over_chunk<false>(g.id(), g.lane(), length, from.size(0), LbfgsLayout::kProductsUnroll,
                                      [&](const Val<i32>& first, int count) {
                                        using V = typename std::remove_cvref_t<decltype(from)>::T;
                                        std::vector<Val<V>> v;
                                        for (int u = 0; u < count; ++u) v.push_back(from[first + u * kLanes]);
                                        for (int u = 0; u < count; ++u) to[first + u * kLanes] = v[size_t(u)];
                                      });
                  };
                  copy(gradient, earlier);
                  copy(candidate, state);
                },
                {{kLanes, 1, 1}, 0});
}

template <class A>
Kernel totals_kernel() {
  return kernel(fmt::format("optimize.lbfgs.totals.{}", name(lockstep::detail::kType<A>)),
                [](Group<1> g, Grid<A, 2> partial, Grid<A, 1> cost, Grid<A, 1> memory, Out<A, 1> numbers) {
                  Var<A> sum = A(0), largest = A(0);
                  for_(Val<i32>(0), partial.size(1), kLanes, [&](Val<i32> first) {
                    const Val<i32> at = first + g.lane();
                    if_(at < partial.size(1), [&] {
                      const Val<A> v = partial(g.id(), at);
                      sum = sum + v;
                      largest = max(Val<A>(largest), v);
                    });
                  });
                  const Val<A> total = group_sum(Val<A>(sum)), most = group_max(Val<A>(largest));
                  if_(g.lane() == 0, [&] {
                    numbers[g.id() + kLbfgsFirstRow] =
                        select(g.id() == kLbfgsGradientMax - kLbfgsFirstRow, most, total);
                    if_(g.id() == 0, [&] {
                      numbers[kLbfgsCost] = cost[0];
                      numbers[kLbfgsPairs] = memory[kPairs];
                    });
                  });
                },
                {{kLanes, 1, 1}, 0});
}

/// `work` with the types of vectors and of sums.
template <class Work>
Kernel by_types(Storage real, Storage sums, Work work) {
  if (real == Storage::f64) return work(f64(), f64());
  return sums == Storage::f64 ? work(f32(), f64()) : work(f32(), f32());
}
std::string key(const LbfgsLayout& l, const std::string& what) {
  return fmt::format("lbfgs {} {} {} {} {}", what, name(l.real), name(l.sums), l.history, l.scaled);
}

}  // namespace

int64_t LbfgsLayout::chunk(int64_t count, int unroll) {
  const int64_t turn = int64_t(kLanes) * unroll, turns = (count + turn - 1) / turn;
  return std::max<int64_t>(1, (turns + kMostChunks - 1) / kMostChunks) * turn;
}

Kernel lbfgs_coefficients(const LbfgsLayout& l) {
  return cached_kernel(key(l, "coefficients"), [&] {
    return l.sums == Storage::f64 ? coefficients_kernel<f64>(l) : coefficients_kernel<f32>(l);
  });
}
Kernel lbfgs_step(const LbfgsLayout& l) {
  return cached_kernel(fmt::format("lbfgs step {}", name(l.real)),
                       [&] { return l.real == Storage::f64 ? step_kernel<f64>() : step_kernel<f32>(); });
}
Kernel lbfgs_direction(const LbfgsLayout& l) {
  return cached_kernel(key(l, "direction"), [&] {
    return by_types(l.real, l.sums, [&]<class T, class A>(T, A) { return direction_kernel<T, A>(l); });
  });
}
Kernel lbfgs_products(const LbfgsLayout& l, LbfgsPass pass) {
  return cached_kernel(key(l, fmt::format("products {}", int(pass))), [&] {
    return by_types(l.real, l.sums, [&]<class T, class A>(T, A) { return products_kernel<T, A>(l, pass); });
  });
}
Kernel lbfgs_squares(const LbfgsLayout& l, bool masked) {
  return cached_kernel(fmt::format("lbfgs squares {} {} {}", name(l.state), name(l.sums), masked), [&] {
    return by_types(l.state, l.sums, [&]<class T, class A>(T, A) { return squares_kernel<T, A>(masked); });
  });
}
Kernel lbfgs_accept(const LbfgsLayout& l) {
  return cached_kernel(fmt::format("lbfgs accept {} {}", name(l.real), name(l.state)), [&] {
    if (l.real == Storage::f64) return accept_kernel<f64, f64>();
    return l.state == Storage::f64 ? accept_kernel<f32, f64>() : accept_kernel<f32, f32>();
  });
}
Kernel lbfgs_totals(const LbfgsLayout& l) {
  return cached_kernel(fmt::format("lbfgs totals {}", name(l.sums)),
                       [&] { return l.sums == Storage::f64 ? totals_kernel<f64>() : totals_kernel<f32>(); });
}

}  // namespace lockstep::optimize
