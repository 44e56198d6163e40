#include "flow/les/recorder.hpp"

#include <fmt/format.h>

#include "flow/les/solver.hpp"
#include "flow/les/update.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

constexpr int kMomentLanes = 256;
constexpr int64_t kRingRows = 1024;

template <class T>
std::string moment_name(const char* what, const std::string& form = "") {
  return fmt::format("flow.moment.{}{}.{}", what, form, name(detail::kType<T>));
}

}  // namespace

template <class T>
Kernel MomentKernels<T>::sums(const KernelForm& form) {
  return kernel(moment_name<T>("sums", "." + text(form)),
                [&](Group<2> g, Parameters& p) {
                  const auto w = p.read<T, 4>("w"), rate = p.read<T, 4>("out");
                  const auto partial = p.write<T, 3>("partial");
                  const Units<T> unit(p);
                  const RightHandSide<T> rhs(p, form);
                  const Val<i32> chunk = g.id(0), m = g.id(1), rows = w.size(form.turned ? 2 : 1),
                                 columns = w.size(form.turned ? 1 : 2);
                  std::vector<Var<T>> sum;
                  for (int k = 0; k < kSums; ++k) sum.emplace_back(T(0));
                  for_(0, int(kChunk) / kMomentLanes, [&](Val<i32> r) {
                    const Val<i32> at = chunk * int(kChunk) + r * kMomentLanes + g.lane();
                    if_(at < rows * columns, [&] {
                      const Val<i32> row = at / columns, ix = at - row * columns;
                      const Mode<T> mode(unit, ix, select(row > rows / 2, row - rows, row));
                      const ComplexVal<T> v = load_state(form.turned, w, m, row, ix),
                                          all = load_state(form.turned, rate, m, row, ix),
                                          linear = rhs.linear(mode, v), forced = rhs.forcing(mode);
                      const Val<T> weight = select(ix == 0, Val<T>(T(0.5)), Val<T>(T(1)));
                      const auto with = [&](const ComplexVal<T>& a) {
                        return weight * (v.re * a.re + v.im * a.im);
                      };
                      const Val<T> z = with(v);
                      sum[kSumEnstrophy] += z;
                      sum[kSumEnergy] += z * mode.over_k2;
                      sum[kSumPalinstrophy] += z * mode.k2;
                      int k = kSumRates;
                      for (const ComplexVal<T>* part : {&linear, &forced, &all}) {
                        const Val<T> work = T(2) * with(*part);
                        sum[size_t(k++)] += work * mode.over_k2;
                        sum[size_t(k++)] += work;
                      }
                    });
                  });
                  for (int k = 0; k < kSums; ++k) {
                    const Val<T> all = group_sum(Val<T>(sum[size_t(k)]));
                    if_(g.lane() == 0, [&] { partial(m, chunk, k) = all; });
                  }
                },
                {{kMomentLanes, 1, 1}, 0});
}

template <class T>
Kernel MomentKernels<T>::record() {
  return kernel(moment_name<T>("record"),
                [](Group<1> g, Parameters& p) {
                  const auto partial = p.read<T, 3>("partial"), speeds = p.read<T, 3>("speeds");
                  const auto clock = p.read<T, 2>("clock");
                  const auto ring = p.write<T, 3>("ring");
                  const Val<i32> m = g.id(0), at = p.scalar<i32>("slot");
                  const auto put = [&](int column, const Val<T>& value) {
                    if_(g.lane() == 0, [&] { ring(at, m, column) = value; });
                  };
                  put(kMomentTime, clock(m, kClockTime));
                  put(kMomentTimeLow, clock(m, kClockTimeLow));
                  put(kMomentDt, clock(m, kClockDt));
                  for (int c = 0; c < 2; ++c) {
                    Var<T> most = T(0);
                    for_(g.lane(), speeds.size(1), kMomentLanes,
                         [&](Val<i32> k) { most = max(Val<T>(most), speeds(m, k, c)); });
                    put(kMomentSpeeds + c, group_max(Val<T>(most)));
                  }
                  for (int k = 0; k < kSums; ++k) {
                    Var<T> sum = T(0);
                    for_(g.lane(), partial.size(1), kMomentLanes,
                         [&](Val<i32> c) { sum += partial(m, c, k); });
                    put(kMomentSums + k, group_sum(Val<T>(sum)));
                  }
                },
                {{kMomentLanes, 1, 1}, 0});
}

template struct MomentKernels<f32>;
template struct MomentKernels<f64>;

void Solver::State::record_moment() {
  Recorder& r = *recorder;
  evaluation.products(w, true);
  run_right_hand_side();
  r.sums.run(device);
  Arguments a = r.arguments;
  a.set("slot", r.filled++);
  device.launch_with(r.record, {members}, a.bind_known(r.record), {});
  if (r.filled == r.ring.shape()[0]) read_moments();
}

void Solver::State::read_moments() {
  Recorder& r = *recorder;
  if (r.filled == 0) return;
  const Array rows = device.download(r.ring.rows(0, r.filled)).to(Storage::f64).packed();
  const double* at = rows.as<double>().data();
  for (int64_t row = 0; row < r.filled; ++row) {
    std::vector<Moment>& moments = r.read.emplace_back();
    for (int64_t m = 0; m < members; ++m, at += kMomentColumns) {
      Moment& moment = moments.emplace_back();
      moment.time = at[kMomentTime] + at[kMomentTimeLow];
      moment.max_u = at[kMomentSpeeds];
      moment.max_v = at[kMomentSpeeds + 1];
      moment.courant = (moment.max_u / model.grid.dx() + moment.max_v / model.grid.dy()) * at[kMomentDt];
      const double* sums = at + kMomentSums;
      moment.budget = {sums[kSumEnergy], sums[kSumEnstrophy], sums[kSumPalinstrophy]};
      const auto rates = [&](int which, double amount, double next) {
        const double linear = sums[kSumRates + which], forcing = sums[kSumRates + 2 + which],
                     all = sums[kSumRates + 4 + which];
        Rates rate;
        rate.viscous = -2 * model.viscosity * next;
        rate.drag = -2 * model.drag * amount;
        rate.other = linear - rate.viscous - rate.drag;
        rate.forcing = forcing;
        rate.closure = all - linear - forcing;
        rate.all = all;
        return rate;
      };
      moment.energy = rates(0, moment.budget.energy, moment.budget.enstrophy);
      moment.enstrophy = rates(1, moment.budget.enstrophy, moment.budget.palinstrophy);
    }
  }
  r.filled = 0;
}

void Solver::record_moments(int64_t every, int64_t since) {
  State& s = *state_;
  if (every < 1 || since < 0 || since >= every)
    throw InputError(fmt::format("moments every {} steps, of which {} are done", every, since), "flow solver",
                     "1 or more, fewer of them done");
  s.make_derivative();
  Recorder& r = s.recorder.emplace();
  r.every = every;
  r.since = since;
  const int64_t chunks = chunks_of(s.modes.count());
  r.partial = s.device.allocate(s.storage, {s.members, chunks, kSums});
  r.ring = s.device.allocate(s.storage, {kRingRows, s.members, kMomentColumns});
  r.arguments.set("partial", r.partial).set("speeds", s.evaluation.speeds());
  r.arguments.set("clock", s.clock).set("ring", r.ring);
  Arguments a = s.evaluation.numbers();
  a.set("w", s.w).set("out", s.derivative).set("partial", r.partial);
  with_precision(s.storage, [&]<class T>(T) {
    r.sums = s.bound(MomentKernels<T>::sums(s.evaluation.form()), {s.members, chunks}, a);
    r.record = MomentKernels<T>::record();
  });
}

std::vector<Moment> Solver::moment() {
  State& s = *state_;
  if (!s.recorder) record_moments(INT64_MAX);
  s.record_moment();
  s.read_moments();
  std::vector<Moment> now = std::move(s.recorder->read.back());
  s.recorder->read.pop_back();
  return now;
}

std::vector<std::vector<Moment>> Solver::moments() {
  State& s = *state_;
  if (!s.recorder) return {};
  s.read_moments();
  return std::exchange(s.recorder->read, {});
}

}  // namespace lockstep::flow
