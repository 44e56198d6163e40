// The two loops of L-BFGS on vectors, without a number read by the host: each pass ends with partial sums
// that every group of the next one adds up.
#include <fmt/format.h>

#include <vector>

#include "device/cached_kernel.hpp"
#include "optimize/lbfgs/trace.hpp"

namespace lockstep::optimize {
namespace {

using namespace lbfgs;

template <class T>
std::string named(const LbfgsLayout& l, const std::string& what) {
  return fmt::format("optimize.lbfgs.{}.{}.{}{}", what, name(lockstep::detail::kType<T>), l.history,
                     l.scaled ? ".scaled" : "");
}

template <class T>
Kernel take_kernel(const LbfgsLayout& l) {
  return kernel(named<T>(l, "take"),
                [l](Group<1> g, Grid<T, 1> numbers, InOut<T, 1> memory, Out<T, 1> loops) {
                  const int m = l.history, sy = l.head(), yy = sy + l.slots();
                  const Taken<T> taken = take<T>(l, numbers, memory);
                  barrier();
                  if_(g.lane() == 0, [&] {
                    if_(taken.kept, [&] {
                      memory[sy + taken.pending] = taken.sy;
                      memory[yy + taken.pending] = taken.yy;
                    });
                    memory[kSlot] = cast<T>(taken.next);
                    memory[kPairs] = cast<T>(taken.pairs);
                  });
                  barrier();
                  const Val<T> one = T(1);
                  for_(g.lane(), m, g.lanes(), [&](Val<i32> age) {
                    const Val<bool> used = age < taken.pairs;
                    const Val<T> own = memory[sy + before(taken.next, age + 1, l.slots())];
                    loops[1 + age] = select(used, one / select(used, own, one), Val<T>(T(0)));
                    loops[1 + m + age] = T(0);
                  });
                  if_(g.lane() == 0, [&] {
                    // Without pairs the first step has length 1 at most, unless a diagonal scales it.
                    const Val<bool> any = taken.pairs > 0;
                    const Val<i32> newest = before(taken.next, Val<i32>(1), l.slots());
                    const Val<T> length = sqrt(numbers[kLbfgsGWG]),
                                 alone = l.scaled ? one : min(one, one / length),
                                 square = select(any, Val<T>(memory[yy + newest]), one);
                    loops[0] = select(any, Val<T>(memory[sy + newest]) / square, alone);
                  });
                },
                {{32, 1, 1}, 0});
}

template <class T>
struct LoopTrace {
  LbfgsLayout l;
  LbfgsLoop pass;
  Group<1> g;
  Grid<T, 1> gradient, diagonal;
  Grid<T, 2> s, y;
  Grid<T, 1> memory;
  InOut<T, 1> loops, step;
  InOut<T, 2> partial;
  Val<i32> age, from, to, length;

  void operator()() const {
    const int m = l.history;
    const bool down = pass == LbfgsLoop::first || pass == LbfgsLoop::down;
    const Val<i32> next = uniform(index_of<T>(memory[kSlot])), pairs = uniform(index_of<T>(memory[kPairs]));
    // The pair of the last pass, whose product the partial sums are, and that of this one.
    const Val<i32> earlier = pass == LbfgsLoop::turn   ? age
                             : pass == LbfgsLoop::last ? Val<i32>(0)
                             : down                    ? max(age - 1, Val<i32>(0))
                                                       : age + 1;
    const Val<bool> has_earlier = earlier < pairs, has_own = age < pairs;
    const Val<i32> earlier_row = uniform(before(next, earlier + 1, l.slots())),
                   own_row = uniform(before(next, age + 1, l.slots()));
    Val<T> factor = T(0);
    if (pass != LbfgsLoop::first) {
      Var<T> sum = T(0);
      for_(Val<i32>(0), g.count(), kLanes, [&](Val<i32> at) {
        if_(at + g.lane() < g.count(), [&] { sum = sum + partial(from, at + g.lane()); });
      });
      const Val<T> product = Val<T>(loops[1 + earlier]) * group_sum(Val<T>(sum));
      if (down || pass == LbfgsLoop::turn) {
        factor = select(has_earlier, -product, Val<T>(T(0)));
        if_(g.id() == 0 && g.lane() == 0, [&] { loops[1 + m + earlier] = -factor; });
      } else {
        factor = select(has_earlier, Val<T>(loops[1 + m + earlier]) - product, Val<T>(T(0)));
      }
    }
    const Val<T> scale = loops[0];
    Var<T> sum = T(0);
    over_chunk<kRolled<T>>(
        g.id(), g.lane(), length, gradient.size(0), LbfgsLayout::kProductsUnroll,
        [&](const Val<i32>& first, int count) {
          std::vector<Val<T>> v, moved, other;  // all loads first, so that they overlap
          for (int u = 0; u < count; ++u) {
            const Val<i32> at = first + u * kLanes;
            const bool by_s = pass == LbfgsLoop::up || pass == LbfgsLoop::last;
            v.push_back(pass == LbfgsLoop::first ? gradient[at] : Val<T>(step[at]));
            if (pass != LbfgsLoop::first) moved.push_back(by_s ? s(earlier_row, at) : y(earlier_row, at));
            other.push_back(pass == LbfgsLoop::last ? gradient[at] : down ? s(own_row, at) : y(own_row, at));
          }
          for (int u = 0; u < count; ++u) {
            const Val<i32> at = first + u * kLanes;
            const Val<T> none = T(0);
            Val<T> now = v[size_t(u)];
            // Slots without a pair may hold what is not finite.
            if (pass != LbfgsLoop::first) now = fma(factor, select(has_earlier, moved[size_t(u)], none), now);
            if (pass == LbfgsLoop::turn)
              now = scale * (l.scaled ? now * inverse_scale<T, T>(diagonal[at]) : now);
            if (pass == LbfgsLoop::last) now = -now;
            step[at] = now;
            const Val<T> with =
                pass == LbfgsLoop::last ? other[size_t(u)] : select(has_own, other[size_t(u)], none);
            sum = fma(now, with, Val<T>(sum));
          }
        });
    const Val<T> total = group_sum(Val<T>(sum));
    if_(g.lane() == 0, [&] { partial(to, g.id()) = total; });
  }
};

template <class T>
Kernel loop_kernel(const LbfgsLayout& l, LbfgsLoop pass) {
  static constexpr const char* kNames[] = {"first", "down", "turn", "up", "last"};
  return kernel(named<T>(l, fmt::format("loop.{}", kNames[int(pass)])),
                [l, pass](Group<1> g, Grid<T, 1> gradient, Grid<T, 1> diagonal, Grid<T, 2> s, Grid<T, 2> y,
                          Grid<T, 1> memory, InOut<T, 1> loops, InOut<T, 1> step, InOut<T, 2> partial,
                          Param<i32> age, Param<i32> from, Param<i32> to, Param<i32> length) {
                  LoopTrace<T>{l,     pass, g,       gradient, diagonal, s,  y,     memory,
                               loops, step, partial, age,      from,     to, length}();
                },
                {{kLanes, 1, 1}, 0});
}

std::string key(const LbfgsLayout& l, const char* what, int pass) {
  return fmt::format("lbfgs {} {} {} {} {}", what, pass, name(l.real), l.history, l.scaled);
}

}  // namespace

Kernel lbfgs_take(const LbfgsLayout& l) {
  return cached_kernel(key(l, "take", 0),
                       [&] { return l.real == Storage::f64 ? take_kernel<f64>(l) : take_kernel<f32>(l); });
}
Kernel lbfgs_loop(const LbfgsLayout& l, LbfgsLoop pass) {
  return cached_kernel(key(l, "loop", int(pass)), [&] {
    return l.real == Storage::f64 ? loop_kernel<f64>(l, pass) : loop_kernel<f32>(l, pass);
  });
}

}  // namespace lockstep::optimize
