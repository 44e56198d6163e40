#include "optimize/first_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "optimize/vector_launch.hpp"
#include "optimize/vectors.hpp"

namespace lockstep::optimize {
namespace {

/// Adam's running means of g and g^2, and what keeps its quotient finite.
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kTiny = 1e-8;

template <class T>
std::string step_kernel_name(std::string_view method) {
  return fmt::format("optimize.{}_step.{}", method, name(lockstep::detail::kType<T>));
}

/// v = momentum v + g; step = -rate v
void sgd_step(const FirstOrderStep& s) {
  by_storage(s.gradient, [&]<class T>(T) {
    static const Kernel k = kernel(
        step_kernel_name<T>("momentum"),
        [](At<1> at, Grid<T, 1> slope, InOut<T, 1> velocity, Out<T, 1> move, Param<T> keep, Param<T> rate) {
          const Val<T> next = fma(keep, velocity[at], slope[at]);
          velocity[at] = next;
          move[at] = -(rate * next);
        });
    launch_over(s.device, k, s.gradient, s.gradient, s.first, s.move, double(T(s.momentum)),
                double(T(s.rate)));
  });
}

/// m, v: running means; step = -rate (m c1) / (sqrt(v c2) + 1e-8) - decay x; x += step.
void adam_step(const FirstOrderStep& s) {
  const auto unbiased = [&](double beta) { return 1 / (1 - std::pow(beta, double(s.number))); };
  by_storage(s.gradient, [&]<class T>(T) {
    static const Kernel k = kernel(
        step_kernel_name<T>("adam"),
        [](At<1> at, Grid<T, 1> slope, InOut<T, 1> mean, InOut<T, 1> square, InOut<T, 1> point,
           Out<T, 1> move, Param<T> rate, Param<T> first, Param<T> second, Param<T> decay) {
          const Val<T> g = slope[at];
          const Val<T> next_mean = fma(Val<T>(T(kBeta1)), mean[at], Val<T>(T(1 - kBeta1)) * g);
          const Val<T> next_square = fma(Val<T>(T(kBeta2)), square[at], Val<T>(T(1 - kBeta2)) * (g * g));
          mean[at] = next_mean;
          square[at] = next_square;
          const Val<T> moved =
              -(rate * ((next_mean * first) / (sqrt(next_square * second) + Val<T>(T(kTiny))))) -
              decay * point[at];
          move[at] = moved;
          point[at] = point[at] + moved;
        });
    launch_over(s.device, k, s.gradient, s.gradient, s.first, s.second, s.point, s.move, double(T(s.rate)),
                double(T(unbiased(kBeta1))), double(T(unbiased(kBeta2))), double(T(s.decay)));
  });
}

constexpr auto kRows = std::to_array<FirstOrderRow>({
    {.method = Method::sgd, .name = "sgd", .has_momentum = true, .launch = sgd_step},
    {.method = Method::adam, .name = "adam", .moves_point = true, .launch = adam_step},
    {.method = Method::adamw, .name = "adamw", .has_decay = true, .moves_point = true, .launch = adam_step},
});

}  // namespace

std::span<const FirstOrderRow> first_order_rows() { return kRows; }
const FirstOrderRow* first_order(Method method) {
  const auto row = std::ranges::find(kRows, method, &FirstOrderRow::method);
  return row == kRows.end() ? nullptr : &*row;
}
const FirstOrderRow* first_order(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &FirstOrderRow::name);
  return row == kRows.end() ? nullptr : &*row;
}
std::string first_order_names(std::string_view last, bool FirstOrderRow::* property) {
  std::vector<std::string_view> names;
  for (const FirstOrderRow& row : kRows)
    if (!property || row.*property) names.push_back(row.name);
  std::string text;
  for (size_t k = 0; k < names.size(); ++k)
    text += fmt::format("{}{}", k == 0 ? "" : k + 1 == names.size() ? last : ", ", names[k]);
  return text;
}

FirstOrderState::FirstOrderState(const Objective& objective, Method method) : row_(*first_order(method)) {
  const Device& device = objective.device();
  const Buffer gradient = objective.gradient();
  for (Buffer* buffer : {&step_, &first_, &second_, &point_}) {
    *buffer = device.allocate(gradient.storage(), {gradient.elements()});
    device.clear(*buffer);
  }
  if (row_.has_decay && objective.point().elements() == gradient.elements())
    write_numbers(device, download_numbers(device, objective.point()), point_);
}

const Buffer& FirstOrderState::next(const Objective& objective, const Options& options) {
  const double decay = row_.has_decay ? options.learning_rate * options.weight_decay : 0;
  row_.launch({objective.device(), objective.gradient(), first_, second_, point_, step_,
               options.learning_rate, options.momentum, decay, ++steps_});
  return step_;
}

std::vector<std::vector<double>> FirstOrderState::vectors(const Device& device) const {
  std::vector<std::vector<double>> out;
  for (const Buffer* buffer : {&first_, &second_, &point_}) out.push_back(download_numbers(device, *buffer));
  return out;
}
void FirstOrderState::restore(const Device& device, std::span<const std::vector<double>> vectors,
                              int64_t steps) {
  write_numbers(device, vectors[0], first_);
  write_numbers(device, vectors[1], second_);
  write_numbers(device, vectors[2], point_);
  steps_ = steps;
}

}  // namespace lockstep::optimize
