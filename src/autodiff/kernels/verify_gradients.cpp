// Derivatives of the kernels that cases launch: forward against reverse mode, and the gradient's bits on two devices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <set>

#include "autodiff/kernels/check.hpp"
#include "autodiff/kernels/widen.hpp"
#include "device/launch/observe.hpp"
#include "lockstep/differentiate.hpp"
#include "lockstep/verify.hpp"
#include "verify/case_results.hpp"
#include "verify/digest.hpp"

namespace lockstep {

namespace {

/// A launch with its arguments by name.
struct NamedLaunch {
  Kernel kernel;
  Shape extent;
  std::map<std::string, Argument> arguments;
};

Argument plain(const Argument& argument) {
  const auto* named = std::get_if<PerReplay>(&argument);
  return named ? std::visit([](const auto& value) { return Argument(value); }, named->value) : argument;
}

/// Buffers and numbers fill the parameters of their kind in order.
NamedLaunch named(const Kernel& kernel, const Shape& extent, std::span<const Argument> given) {
  NamedLaunch launch{kernel, extent, {}};
  std::vector<std::string> names[2];
  for (const KernelParameter& p : kernel.parameters()) names[p.buffer].push_back(p.name);
  size_t next[2] = {0, 0};
  for (const Argument& argument : given) {
    const bool buffer = std::holds_alternative<Buffer>(argument);
    launch.arguments[names[buffer].at(next[buffer]++)] = plain(argument);
  }
  return launch;
}

/// The first launch of each kernel.
std::vector<NamedLaunch> launches_of(const std::function<void()>& run) {
  std::vector<NamedLaunch> list;
  std::set<uint64_t> seen;
  const device::LaunchObserver observer = [&](const Kernel& kernel, const Shape& extent,
                                              std::span<const Argument> arguments) {
    if (extent.elements() && seen.insert(kernel.id()).second)
      list.push_back(named(kernel, extent, arguments));
  };
  const device::ObservedLaunches observed(observer);
  run();
  return list;
}

/// Missing values (NaN, infinities) become the first finite one: no derivative is known of them. `wide`: as f64.
Array finite(Array array, bool wide) {
  const Storage own = array.storage();
  if (!is_float(value_type(own))) return array;
  if (first_not_finite(array)) {
    Array all = array.to(Storage::f64);
    const auto values = all.mutate<f64>();
    const auto first = std::ranges::find_if(values, [](double v) { return std::isfinite(v); });
    const double fill = first == values.end() ? 0.5 : *first;
    for (double& v : values)
      if (!std::isfinite(v)) v = fill;
    array = all.to(own);
  }
  return wide ? array.to(Storage::f64) : array;
}

/// With copies of the buffers, without gaps, on `to`.
Arguments copied(const NamedLaunch& launch, const Device& from, const Device& to, bool wide = false) {
  Arguments arguments;
  for (const auto& [name, argument] : launch.arguments) {
    const auto* buffer = std::get_if<Buffer>(&argument);
    arguments.set(name, buffer ? Argument(to.upload(finite(from.download(*buffer), wide))) : argument);
  }
  return arguments;
}

constexpr uint64_t kSeed = 1;
/// Of the modes, which round differently, by the size of the terms that they add.
constexpr double kMostNarrow = 1e-4, kMostWide = 1e-10;
/// Compilation takes minutes beyond.
constexpr size_t kMostInstructions = 20000;
constexpr int kMostSeconds = 60;
/// Of the processors for this process, so that a loaded machine leaves out nothing more.
double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

bool is_narrow(const Kernel& kernel) {
  return std::ranges::any_of(kernel.parameters(), [](const KernelParameter& p) {
    return p.buffer ? is_float(value_type(p.storage)) && p.storage != Storage::f64 : p.type == Type::f32;
  });
}
/// `rounding`: that of slopes of one, which is left where they cancel and the terms of forward mode are zero.
bool modes_agree(const KernelGradientCheck& c, double most, double rounding) {
  return std::fabs(c.forward - c.reverse) <= std::max(most * c.scale, rounding * c.norms);
}

/// The modes of the kernel with f64 in place of narrower floats, on the interpreter.
std::optional<KernelGradientCheck> check_widened(const NamedLaunch& launch, const Device& from) {
  const std::optional<Kernel> kernel = gradients::widened(launch.kernel);
  if (!kernel) return std::nullopt;
  try {
    const Device interp = Device::open("interp");
    return check_gradient(interp, *kernel, launch.extent, copied(launch, from, interp, true), {}, kSeed,
                          1e-6);
  } catch (const UnsupportedError&) {
    return std::nullopt;  // more shared memory than there is
  }
}

GradientRow check(const NamedLaunch& launch, const Device& device, const Device& other) {
  GradientRow row;
  row.kernel = launch.kernel.name();
  const bool narrow = is_narrow(launch.kernel);
  try {
    const gradients::Comparison comparison(launch.kernel, {});
    if (const size_t n = comparison.instructions(); n > kMostInstructions) {
      row.left_out = fmt::format("reverse mode has {} instructions; at most {}", n, kMostInstructions);
      return row;
    }
    row.check = comparison.modes(device, launch.extent, copied(launch, device, device), kSeed, 1e-4);
    row.same_bits = digest(row.check.gradients) ==
                    digest(comparison.gradients(other, launch.extent, copied(launch, device, other), kSeed));
    if (narrow) row.wide = check_widened(launch, device);
  } catch (const Error& e) {
    row.rejected = e.what();
    return row;
  }
  const KernelGradientCheck& c = row.check;
  // Infinite slopes may cancel in reverse mode alone: (a - b) s where a = b, and s is the root of 0.
  if (!std::isfinite(c.forward))
    row.rejected = std::isfinite(c.reverse) ? "forward mode passes an infinite slope at these inputs"
                                            : "the derivative is not finite at these inputs";
  constexpr double kWide = std::numeric_limits<double>::epsilon();
  // In f32 only together with f64: rounding of slopes of one would hide wrong ones that are small.
  const double narrow_rounding = row.wide ? double(std::numeric_limits<float>::epsilon()) : 0;
  row.pass = row.same_bits &&
             modes_agree(c, narrow ? kMostNarrow : kMostWide, narrow ? narrow_rounding : kWide) &&
             (!row.wide || modes_agree(*row.wide, kMostWide, kWide));
  return row;
}

}  // namespace

std::vector<GradientRow> verify_gradients(const Case& c, const std::string& size, const Device& opened,
                                          const Device& other, uint64_t seed) {
  if (!case_unsupported(c, opened).empty()) return {};
  const Device device = case_device(c, opened);
  const CaseProblem problem = c.make(size, seed);
  CaseRun run = problem.bind(device);
  std::vector<GradientRow> rows;
  const double start = processor_seconds();
  for (const NamedLaunch& launch : launches_of(run.run)) {
    if (processor_seconds() - start < kMostSeconds) {
      rows.push_back(check(launch, device, other));
    } else {
      rows.push_back({});
      rows.back().kernel = launch.kernel.name();
      rows.back().left_out = fmt::format("the case took more than {} s of processor time", kMostSeconds);
    }
    rows.back().name = c.name, rows.back().size = size;
  }
  return rows;
}

}  // namespace lockstep
