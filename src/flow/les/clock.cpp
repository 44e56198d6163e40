// Kernels of time: the fastest points, the time step they allow, the watch for a blow-up.
#include <fmt/format.h>

#include <limits>

#include "flow/les/kernels.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::flow {

namespace {
constexpr int kSpeedLanes = 256, kLookLanes = 64;
}

template <class T>
Kernel ClockKernels<T>::speeds(bool eddy) {
  return kernel(
      fmt::format("flow.speeds{}.{}", eddy ? ".eddy" : "", name(detail::kType<T>)),
      [=](Group<2> g, Parameters& p) {
        const auto fields = p.read<T, 2>("velocity");  // (fields * members, points): u first, then v
        const auto speeds = p.write<T, 3>("speeds");
        const Val<i32> chunk = g.id(0), m = g.id(1), members = g.count(1), points = fields.size(1);
        for (int k = 0; k < (eddy ? 3 : 2); ++k) {
          Var<T> most = T(0);
          for_(0, int(kChunk) / kSpeedLanes, [&](Val<i32> r) {
            const Val<i32> at = chunk * int(kChunk) + r * kSpeedLanes + g.lane();
            if_(at < points, [&] {
              // A NaN counts as infinite: the maximum would drop it.
              const Val<T> speed = k < 2 ? abs(fields(members * k + m, at)) : p.read<T, 2>("eddy")(m, at);
              const Val<T> huge = std::numeric_limits<T>::max();
              most =
                  max(Val<T>(most), select(speed <= huge, speed, Val<T>(std::numeric_limits<T>::infinity())));
            });
          });
          const Val<T> all = group_max(Val<T>(most));
          if_(g.lane() == 0, [&] { speeds(m, chunk, k) = all; });
        }
      },
      {{kSpeedLanes, 1, 1}, 0});
}

template <class T>
Kernel ClockKernels<T>::look(bool adaptive, bool eddy) {
  return kernel(
      fmt::format("flow.look{}{}.{}", adaptive ? ".adaptive" : "", eddy ? ".eddy" : "",
                  name(detail::kType<T>)),
      [=](Group<1> g, Parameters& p) {
        const auto speeds = p.read<T, 3>("speeds");
        const auto clock = p.read_write<T, 2>("clock");
        const auto status = p.read_write<i32, 2>("status");
        const Val<i32> m = g.id(0);
        const auto fastest = [&](int k) {
          Var<T> most = T(0);
          for_(0, (speeds.size(1) + (kLookLanes - 1)) / kLookLanes, [&](Val<i32> r) {
            const Val<i32> chunk = r * kLookLanes + g.lane();
            if_(chunk < speeds.size(1), [&] { most = max(Val<T>(most), speeds(m, chunk, k)); });
          });
          return group_max(Val<T>(most));
        };
        const Val<T> u = fastest(0), v = fastest(1);
        const Val<T> viscosity = eddy ? fastest(2) : Val<T>(T(0));
        const Val<T> rate = u / p.scalar<T>("dx") + v / p.scalar<T>("dy");
        const Val<T> largest_dt = p.scalar<T>("largest_dt"), limit = p.scalar<T>("blow_up");
        if_(g.lane() == 0, [&] {
          clock(m, kClockRate) = rate;
          const Val<T> finite = std::numeric_limits<T>::max();
          Val<bool> sound = rate <= finite && viscosity <= finite;
          if (adaptive) {
            const Val<T> left = clock(m, kClockEnd) - clock(m, kClockTime) - clock(m, kClockTimeLow);
            Val<T> dt = min(min(largest_dt, p.scalar<T>("cfl") / rate), left);
            // Where there is no eddy viscosity the quotient is still finite.
            if (eddy) dt = min(dt, p.scalar<T>("eddy_limit") / max(viscosity, T(1e-30)));
            const Val<T> taken = select(left > T(1e-6) * largest_dt && sound, dt, Val<T>(T(0)));
            clock(m, kClockDt) = taken;
            if_(taken > T(0), [&] { clock(m, kClockLeast) = min(taken, Val<T>(clock(m, kClockLeast))); });
          } else {
            sound = rate * largest_dt <= limit;
          }
          if_(!sound && status(m, kStatusBlownUp) < 0,
              [&] { status(m, kStatusBlownUp) = status(m, kStatusSteps); });
        });
      },
      {{kLookLanes, 1, 1}, 0});
}

template <class T>
Kernel ClockKernels<T>::tick() {
  return kernel(fmt::format("flow.tick.{}", name(detail::kType<T>)), [](At<1> at, Parameters& p) {
    const auto clock = p.read_write<T, 2>("clock");
    const auto status = p.read_write<i32, 2>("status");
    const Val<i32> m = at.x, by = p.scalar<i32>("by");
    // The time is the sum of two numbers: what rounding takes from the first stays in the second.
    const Val<T> dt = clock(m, kClockDt), time = clock(m, kClockTime);
    const Val<T> step = dt * cast<T>(by) + clock(m, kClockTimeLow), sum = time + step;
    clock(m, kClockTime) = sum;
    clock(m, kClockTimeLow) = step - (sum - time);
    status(m, kStatusSteps) = status(m, kStatusSteps) + select(dt > T(0), by, Val<i32>(0));
  });
}

template <class T>
Kernel ClockKernels<T>::keep() {
  return kernel(fmt::format("flow.keep.{}", name(detail::kType<T>)), [](At<3> at, Parameters& p) {
    const auto w = p.read<T, 4>("w");
    const auto good = p.write<T, 4>("good");
    const Val<i32> m = at.z, row = at.y, column = at.x;
    if_(p.read<i32, 2>("status")(m, kStatusBlownUp) < 0,
        [&] { good.template store_wide<2>(w.template wide<2>(m, row, column, 0), m, row, column, 0); });
  });
}

template struct ClockKernels<f32>;
template struct ClockKernels<f64>;

// ── rings ──

template <class T>
Kernel RingKernels<T>::sums() {
  constexpr int kLanes = 64;
  return kernel(fmt::format("flow.rings.{}", name(detail::kType<T>)),
                [](Group<2> g, Parameters& p) {
                  const auto w = p.read<T, 3>("w"), n = p.read<T, 3>("n");  // (members, modes, 2)
                  const auto first = p.read<i32, 1>("first"), order = p.read<i32, 1>("order");
                  const auto share = p.read<T, 2>("share");  // (modes, 2): k^2; 1, or 1/2 on the axis kx = 0
                  const auto sums = p.write<T, 3>("sums");
                  const Val<i32> ring = g.id(0), m = g.id(1);
                  const Val<i32> begin = first[ring], end = first[ring + 1];
                  std::vector<Var<T>> sum;
                  for (int k = 0; k < kRingColumns; ++k) sum.emplace_back(T(0));
                  for_(begin + g.lane(), end, kLanes, [&](Val<i32> at) {
                    const Val<i32> mode = order[at];
                    const Val<T> k2 = share(mode, 0), weight = share(mode, 1);
                    const Val<T> re = w(m, mode, 0), im = w(m, mode, 1);
                    const Val<T> z = weight * (re * re + im * im);
                    const Val<T> transfer = T(2) * weight * (re * n(m, mode, 0) + im * n(m, mode, 1));
                    const Val<T> over = select(k2 > T(0), T(1) / k2, Val<T>(T(0)));
                    sum[0] += z;
                    sum[1] += z * over;
                    sum[2] += z * k2;
                    sum[3] += transfer;
                    sum[4] += transfer * over;
                  });
                  for (int k = 0; k < kRingColumns; ++k) {
                    const Val<T> all = group_sum(Val<T>(sum[size_t(k)]));
                    if_(g.lane() == 0, [&] { sums(m, ring, k) = all; });
                  }
                },
                {{kLanes, 1, 1}, 0});
}

template struct RingKernels<f32>;
template struct RingKernels<f64>;

}  // namespace lockstep::flow
