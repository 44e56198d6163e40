// Cases of UTCI and PET on grids. The seed chooses the air of the step.
#include "urban/comfort/cases.hpp"

#include <cmath>
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
  std::vector<float> first, second;  ///< shares of the wind, and K above the air
};
constexpr float kShare = 0.375f, kMostShare = 2.25f;
constexpr int kLeastAir = -2, kMostAir = 3;

ComfortInput random_comfort(int64_t pixels, uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  };
  ComfortInput step{between(-20, 38), between(10, 90), between(0.5, 6), {}, {}, {}};
  step.tmrt.reserve(static_cast<size_t>(pixels));
  for (int64_t k = 0; k < pixels; ++k) {
    const double tmrt = step.ta + between(-20, 50);
    step.tmrt.push_back(k % 97 == 41 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(tmrt));
  }
  for (int64_t k = 0; k < pixels; ++k) {
    step.first.push_back(k % 13 == 5 ? 1.0f : static_cast<float>(between(0.2, kMostShare)));
    step.second.push_back(static_cast<float>(between(0.2, kMostShare)));
  }
  return step;
}

WindShares shares_of(const Device& device, const ComfortInput& s) {
  return {device.upload(s.first), device.upload(s.second), kShare};
}
double share_at(const ComfortInput& s, size_t k) {
  return std::lerp(static_cast<double>(s.first[k]), static_cast<double>(s.second[k]), double{kShare});
}

/// K above the air, whole ones among them.
std::vector<float> offsets_of(const ComfortInput& s) {
  std::vector<float> offsets;
  for (size_t k = 0; k < s.first.size(); ++k)
    offsets.push_back(k % 5 == 2 ? static_cast<float>(k % 4) - 1 : 2 * (s.first[k] - 1));
  return offsets;
}
double in_air(const ComfortInput& s, size_t k, double kelvin) {
  return 20 + static_cast<double>(s.second[k]) * kelvin * kelvin;
}

/// `run` computes a step on a device; `value` is the plain result for pixel k of a Tmrt.
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
      for (size_t k = 0; k < step->tmrt.size(); ++k)
        out.push_back(static_cast<float>(pixel(static_cast<double>(step->tmrt[k]), k)));
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
      [](const ComfortInput& s) {
        return [&s](double tmrt, size_t) { return utci(s.ta, s.rh, s.wind, tmrt); };
      }));
  registry.add(comfort_case(
      "urban.pet", kernels::pet, 0.02,
      [](const Device& device, const ComfortInput& s, const Buffer& tmrt, const Buffer& out) {
        const PetStep step(s.ta, s.rh, s.wind);
        const Buffer table = device.upload(step.table);
        return [=, first = step.first_c] { pet_grid(device, {}, first, table, tmrt, out); };
      },
      [](const ComfortInput& s) {
        return [even = std::make_shared<EvenPet>(s.ta, s.rh, s.wind)](double tmrt, size_t) {
          return (*even)(tmrt);
        };
      }));
  registry.add(comfort_case(
      "urban.utci.wind", kernels::utci_wind, 0.005,
      [](const Device& device, const ComfortInput& s, const Buffer& tmrt, const Buffer& out) {
        const Buffer table =
            device.upload(utci_rows(s.ta, s.rh, kMostShare, [&s](double f) { return f * s.wind; }));
        return [=, wind = shares_of(device, s)] { utci_grid(device, {}, s.ta, table, wind, tmrt, out); };
      },
      [](const ComfortInput& s) {
        return [&s](double tmrt, size_t k) { return utci(s.ta, s.rh, s.wind * share_at(s, k), tmrt); };
      }));
  registry.add(comfort_case(
      "urban.pet.wind", kernels::pet_wind, 0.05,
      [](const Device& device, const ComfortInput& s, const Buffer& tmrt, const Buffer& out) {
        const PetRows rows = pet_rows(s.ta, s.rh, kMostShare, {}, [&s](double f) { return f * s.wind; });
        const Buffer table = device.upload(std::span<const float>(rows.values), rows.shape());
        return [=, first = rows.first_c, wind = shares_of(device, s)] {
          pet_grid(device, {}, first, table, wind, tmrt, out);
        };
      },
      [](const ComfortInput& s) {
        return [&s](double tmrt, size_t k) { return EvenPet(s.ta, s.rh, s.wind * share_at(s, k))(tmrt); };
      }));
  registry.add(comfort_case(
      "urban.air.between", kernels::between_airs, 1e-4,
      [](const Device& device, const ComfortInput& s, const Buffer&, const Buffer& out) {
        device.clear(out);
        const Buffer offset = device.upload(offsets_of(s));
        std::vector<std::pair<int, Buffer>> parts;
        for (int node = kLeastAir; node <= kMostAir; ++node) {
          std::vector<float> part;
          for (size_t k = 0; k < s.tmrt.size(); ++k) part.push_back(static_cast<float>(in_air(s, k, node)));
          parts.emplace_back(node, device.upload(part));
        }
        return [=] {
          for (const auto& [node, part] : parts) between_airs(device, {}, node, offset, part, out);
        };
      },
      [](const ComfortInput& s) {
        return [&s, offsets = offsets_of(s)](double, size_t k) {
          const double offset = static_cast<double>(offsets[k]), below = std::floor(offset);
          return std::lerp(in_air(s, k, below), in_air(s, k, below + 1), offset - below);
        };
      }));
}

}  // namespace lockstep::urban
