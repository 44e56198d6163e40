// Cases of UTCI and PET on grids. The seed chooses the air of the step.
#include "urban/comfort/cases.hpp"

#include <limits>
#include <memory>
#include <random>

#include "urban/comfort/comfort.hpp"
#include "urban/comfort/kernels.hpp"

namespace lockstep::urban {
namespace {

struct ComfortInput {
  double ta, rh, wind;
  std::vector<float> tmrt;
};

ComfortInput random_comfort(int64_t pixels, uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  };
  ComfortInput step{between(-20, 38), between(10, 90), between(0.5, 6), {}};
  step.tmrt.reserve(static_cast<size_t>(pixels));
  for (int64_t k = 0; k < pixels; ++k) {
    const double tmrt = step.ta + between(-20, 50);
    step.tmrt.push_back(k % 97 == 41 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(tmrt));
  }
  return step;
}

/// `run` computes a step on a device; `value` is the plain result for one pixel.
template <class Run, class Value>
Case comfort_case(const std::string& name, const Kernel& (*kernel)(), double bound, Run run, Value value) {
  Case c;
  c.name = name;
  c.small = {"1x1", "1x37", "40x3", "33x52"};
  c.bench = {"512x512", "1024x1024"};
  c.kernels = [kernel] { return std::vector{kernel()}; };
  c.webgpu = c.reference = Bound::absolute(bound);
  c.make = [run, value](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 2);
    const auto step = std::make_shared<const ComfortInput>(random_comfort(shape.elements(), seed));
    CaseProblem p;
    p.bytes = 8.0 * static_cast<double>(shape.elements());
    p.reference = [=] {
      const auto pixel = value(*step);
      std::vector<float> out;
      out.reserve(step->tmrt.size());
      for (const float tmrt : step->tmrt) out.push_back(static_cast<float>(pixel(static_cast<double>(tmrt))));
      return std::vector{Array::of(out, shape)};
    };
    p.bind = [=](const Device& device) {
      const Buffer tmrt = device.upload(std::span<const float>(step->tmrt), shape);
      const Buffer out = device.allocate<f32>(shape);
      return CaseRun{run(device, *step, tmrt, out), [=] { return std::vector{device.download(out)}; }};
    };
    return p;
  };
  return c;
}

}  // namespace

void add_comfort_cases(CaseRegistry& registry) {
  registry.add(comfort_case(
      "urban.utci", kernels::utci, 1e-4,
      [](const Device& device, const ComfortInput& s, const Buffer& tmrt, const Buffer& out) {
        return [=, step = UtciStep(s.ta, s.rh, s.wind)] { utci_grid(device, {}, step, tmrt, out); };
      },
      [](const ComfortInput& s) { return [&s](double tmrt) { return utci(s.ta, s.rh, s.wind, tmrt); }; }));
  registry.add(comfort_case(
      "urban.pet", kernels::pet, 0.02,
      [](const Device& device, const ComfortInput& s, const Buffer& tmrt, const Buffer& out) {
        const PetStep step(s.ta, s.rh, s.wind);
        const Buffer table = device.upload(step.table);
        return [=, first = step.first_c] { pet_grid(device, {}, first, table, tmrt, out); };
      },
      [](const ComfortInput& s) {
        return [even = std::make_shared<EvenPet>(s.ta, s.rh, s.wind)](double tmrt) { return (*even)(tmrt); };
      }));
}

}  // namespace lockstep::urban
