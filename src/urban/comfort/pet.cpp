// PET: the state of the body outdoors, then the indoor air of the same state.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "lockstep/error.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/comfort/memi.hpp"

namespace lockstep::urban {
namespace {

constexpr double kFinestStep = 0.001;  // K

/// End of a search: the last point that was evaluated, and one step back from there.
struct Walk {
  double last, at;
};

/// Steps of 1, 0.1, 0.01 and 0.001 K until `sum` changes its sign; upwards where it is positive and `upwards` is 1.
/// `remembers`: a finer step's first sum is compared with the coarser one's last, as published for the indoor air.
template <class Sum>
Walk walk(double start, int upwards, bool remembers, Sum sum) {
  constexpr int kMostSteps = 200;
  Walk w{start, start};
  double before = 0;
  for (const double step : {1.0, 0.1, 0.01, kFinestStep}) {
    if (!remembers) before = 0;
    for (int k = 0; k < kMostSteps; ++k) {
      w.last = w.at;
      const double now = sum(w.last);
      if (now == 0 || std::isnan(now)) return w;
      w.at += upwards * std::copysign(step, now);
      const bool turned = now * before < 0;
      before = now;
      if (turned) break;
    }
  }
  return w;
}

/// A zero of `sum` near `start` by steps of 1 K to enclose it, then by false position (Illinois). NaN without one.
template <class Sum>
double zero_of(double start, int upwards, Sum sum) {
  constexpr int kMostSteps = 200, kMostPasses = 60;
  double a = start, fa = sum(a), b = a, fb = fa;
  for (int k = 0; k < kMostSteps && fa * fb > 0; ++k) {
    a = b;
    fa = fb;
    b += upwards * std::copysign(1.0, fa);
    fb = sum(b);
  }
  if (!(fa * fb <= 0)) return memi::kNaN;
  for (int k = 0; k < kMostPasses && std::abs(b - a) > 1e-9 && fb != 0; ++k) {
    const double c = b - fb * (b - a) / (fb - fa), fc = sum(c);
    if (fb * fc < 0) {
      a = b;
      fa = fb;
    } else {
      fa *= 0.5;
    }
    const double moved = std::abs(c - b);
    b = c;
    fb = fc;
    if (moved < 1e-7) break;
  }
  return b;
}

double published_pet(const memi::Body& body, const memi::Air& air) {
  for (const double slack : memi::kSlack) {
    for (int candidate = 1; candidate <= memi::kCandidates; ++candidate) {
      const Walk cloth = walk(air.first_cloth(), 1, false,
                              [&](double t) { return memi::state_of(candidate, body, air, t).balance; });
      memi::State state = memi::state_of(candidate, body, air, cloth.last);
      if (!memi::holds(candidate, state, slack)) continue;
      state.cloth = cloth.at;
      return walk(air.ta, -1, true, [&](double t) { return memi::indoor_gain(body, state, t); }).at;
    }
  }
  return memi::kNaN;
}

}  // namespace

double pet(double ta_c, double rh_percent, double tmrt_c, double wind_1m1, const Person& person) {
  schema_of<Person>().check(&person);
  if (!std::isfinite(ta_c + rh_percent + tmrt_c + wind_1m1) || wind_1m1 < 0) return memi::kNaN;
  const memi::Body body(person);
  return published_pet(body, memi::air_of(body, ta_c, rh_percent, tmrt_c, wind_1m1));
}

struct EvenPet::Setting {
  memi::Body body;
  memi::Air air;
  std::array<double, memi::kCandidates> cloth;  // of the last balance, the next one's guess
  double indoor;
};

EvenPet::EvenPet(double ta_c, double rh_percent, double wind_1m1, const Person& person) {
  schema_of<Person>().check(&person);
  if (!std::isfinite(ta_c + rh_percent + wind_1m1) || wind_1m1 < 0) return;
  const memi::Body body(person);
  setting_ = std::make_unique<Setting>(
      Setting{body, memi::air_of(body, ta_c, rh_percent, ta_c, wind_1m1), {}, ta_c});
  setting_->cloth.fill(memi::kNaN);
}
EvenPet::~EvenPet() = default;

double EvenPet::operator()(double tmrt_c) {
  if (!setting_ || !std::isfinite(tmrt_c)) return memi::kNaN;
  const memi::Body& body = setting_->body;
  memi::Air& air = setting_->air;
  air.tmrt = tmrt_c;
  const double first = air.first_cloth();
  for (const double slack : memi::kSlack) {
    for (int candidate = 1; candidate <= memi::kCandidates; ++candidate) {
      double& guess = setting_->cloth[static_cast<size_t>(candidate - 1)];
      const double cloth = zero_of(std::isnan(guess) ? first : guess, 1,
                                   [&](double t) { return memi::state_of(candidate, body, air, t).balance; });
      guess = cloth;
      if (std::isnan(cloth) || !memi::holds(candidate, memi::state_of(candidate, body, air, cloth), slack))
        continue;
      const double way = std::clamp(cloth - first, -1.0, 1.0);
      const memi::State state = memi::state_of(candidate, body, air, cloth + 0.5 * kFinestStep * way);
      const double indoor =
          zero_of(setting_->indoor, -1, [&](double t) { return memi::indoor_gain(body, state, t); });
      return std::isnan(indoor) ? published_pet(body, air) : setting_->indoor = indoor;
    }
  }
  return published_pet(body, air);  // moist air that is far warmer than all around has no even state
}

}  // namespace lockstep::urban
