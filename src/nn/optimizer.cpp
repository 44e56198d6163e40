#include "lockstep/nn/optimizer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/optimizer_kernels.hpp"
#include "optimize/first_order.hpp"

namespace lockstep::nn {

namespace {

constexpr std::array<std::string_view, 4> kDecays{"constant", "cosine", "linear", "step"};

void expect(bool good, const std::string& what, const std::string& expected) {
  if (!good) throw InputError(what, "optimizer", expected);
}

}  // namespace

std::string_view name(Schedule::Decay decay) { return kDecays[size_t(decay)]; }
Schedule::Decay parse_decay(std::string_view text) {
  for (size_t k = 0; k < kDecays.size(); ++k)
    if (kDecays[k] == text) return Schedule::Decay(k);
  throw InputError(fmt::format("schedule '{}'", text), "optimizer", "constant, cosine, linear or step");
}

void describe(lockstep::Schema<Schedule>& s) {
  s.of("nn::Schedule");
  s.option("rate", &Schedule::rate, "learning rate").above(0).shown("R");
}
void describe(lockstep::Schema<OptimizerOptions>& s) {
  s.of("nn::OptimizerOptions");
  s.include(&OptimizerOptions::schedule);
  s.option("clip_norm", &OptimizerOptions::clip_norm, "gradients beyond this norm are scaled down; 0: none")
      .at_least(0)
      .shown("N");
}

void Schedule::check() const {
  expect(rate >= 0 && std::isfinite(rate), fmt::format("rate {}", rate), "0 or more");
  expect(warmup >= 0, fmt::format("warmup {}", warmup), "0 or more steps");
  expect(final_share >= 0 && final_share <= 1, fmt::format("final_share {}", final_share), "0 to 1");
  if (decay == Decay::cosine || decay == Decay::linear)
    expect(total > warmup, fmt::format("total {}", total), "more steps than warmup");
  if (decay == Decay::step) {
    expect(every >= 1, fmt::format("every {}", every), "1 or more steps");
    expect(factor > 0 && factor <= 1, fmt::format("factor {}", factor), "above 0, to 1");
  }
}

double Schedule::at(int64_t step) const {
  if (step < warmup) return rate * double(step + 1) / double(warmup);
  const double past = double(step - warmup);
  const double share = std::min(past / double(std::max<int64_t>(total - warmup, 1)), 1.0);
  switch (decay) {
    case Decay::cosine:
      return rate * (final_share + (1 - final_share) * 0.5 * (1 + std::cos(3.14159265358979323846 * share)));
    case Decay::linear: return rate * (1 - (1 - final_share) * share);
    case Decay::step: return rate * std::pow(factor, std::floor(past / double(every)));
    case Decay::constant: break;
  }
  return rate;
}

template <class T>
const Kernel& clip_kernel() {
  static const Kernel k =
      kernel(nn_kernel_name<T>("clip"), [](At<1> at, InOut<T, 1> g, Grid<T, 1> norm, Param<T> most) {
        const Val<T> size = norm[Val<i32>(0)];
        if_(size > most, [&] { g[at] = g[at] * (most / size); });
      });
  return k;
}
template const Kernel& clip_kernel<f32>();
template const Kernel& clip_kernel<f64>();

Optimizer::Optimizer(const Device& device, const Buffer& parameters, const OptimizerOptions& options)
    : device_(device), parameters_(parameters), options_(options) {
  expect(parameters && parameters.shape().rank() == 1 &&
             (parameters.storage() == Storage::f32 || parameters.storage() == Storage::f64),
         "parameters", "one axis of f32 or f64");
  expect(optimize::first_order(options.method), fmt::format("method {}", optimize::name(options.method)),
         optimize::first_order_names());
  expect(options.momentum >= 0 && options.momentum < 1, fmt::format("momentum {}", options.momentum),
         "0 or more, below 1");
  expect(options.weight_decay >= 0, fmt::format("weight_decay {}", options.weight_decay), "0 or more");
  expect(options.clip_norm >= 0, fmt::format("clip_norm {}", options.clip_norm), "0 or more");
  options.schedule.check();
  for (Buffer* b : {&first_, &second_, &move_}) {
    *b = device.allocate(parameters.storage(), parameters.shape());
    device.clear(*b);
  }
  if (options.clip_norm > 0) norm_ = device.allocate(parameters.storage(), {1});
}

void Optimizer::forget_moments() {
  device_.clear(first_);
  device_.clear(second_);
  moment_steps_ = 0;
}

void Optimizer::launch_step(const Buffer& gradient) { launch_step(gradient, next_rate()); }

void Optimizer::launch_step(const Buffer& gradient, double rate) {
  if (options_.clip_norm > 0) {
    primitives::norm(device_, gradient, norm_);
    by_type(gradient.storage(), [&]<class T>(T) {
      device_.launch(clip_kernel<T>(), {gradient.elements()}, gradient, norm_, double(T(options_.clip_norm)));
    });
  }
  ++steps_;
  const optimize::FirstOrderRow& row = *optimize::first_order(options_.method);
  row.launch({device_, gradient, first_, second_, parameters_, move_, rate, options_.momentum,
              row.has_decay ? rate * options_.weight_decay : 0, ++moment_steps_});
  if (!row.moves_point) primitives::axpy(device_, 1, move_, parameters_);
}

}  // namespace lockstep::nn
