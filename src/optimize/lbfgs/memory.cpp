#include "optimize/lbfgs/memory.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "optimize/vectors.hpp"

namespace lockstep::optimize {

LbfgsMemory::LbfgsMemory(Objective& objective, int history, bool scaled) : objective_(objective) {
  const Buffer point = objective.point(), gradient = objective.gradient();
  layout_ = {history,
             scaled,
             gradient.storage(),
             objective.value().storage(),
             point.storage(),
             gradient.elements(),
             point.elements()};
  const Device& d = device();
  // Rows begin at multiples of 128 bytes, an odd number of these apart: not all in the same set of a cache.
  const int64_t line = 128 / size_of(layout_.real), lines = (layout_.size + line - 1) / line | 1;
  for (Buffer* b : {&s_, &y_}) {
    const Buffer whole = d.allocate(layout_.real, {layout_.slots(), lines * line});
    d.clear(whole);
    *b = whole.window({0, 0}, {layout_.slots(), layout_.size});
  }
  for (Buffer* b : {&earlier_, &step_}) *b = d.allocate(layout_.real, {layout_.size});
  if (scaled) diagonal_ = d.allocate(layout_.real, {layout_.size});
  memory_ = d.allocate(layout_.sums, {layout_.memory()});
  coefficients_ = d.allocate(layout_.sums, {layout_.coefficients()});
  partial_ = d.allocate(layout_.sums, {layout_.rows() + (layout_.by_products() ? 0 : 2), layout_.columns()});
  numbers_ = d.allocate(layout_.sums, {layout_.numbers()});
  d.clear(partial_);
}

void LbfgsMemory::begin() {
  device().copy(objective_.gradient(), earlier_);
  begin_again();
}

void LbfgsMemory::begin_again() {
  device().copy(earlier_, objective_.gradient());
  for (const Buffer& b : {step_, memory_, numbers_}) device().clear(b);
  launch_products(objective_.gradient(), LbfgsPass::trial);
  launch_totals();
}

void LbfgsMemory::launch_direction(const Buffer& gradient) {
  if (!layout_.by_products()) return launch_loops(gradient);
  constexpr int kUnroll = LbfgsLayout::kDirectionUnroll;
  device().launch(lbfgs_coefficients(layout_), {1}, numbers_, memory_, coefficients_);
  device().launch(lbfgs_direction(layout_), {LbfgsLayout::chunks(layout_.size, kUnroll)}, gradient,
                  layout_.scaled ? diagonal_ : gradient, s_, y_, memory_, coefficients_, step_, partial_,
                  LbfgsLayout::chunk(layout_.size, kUnroll));
}

void LbfgsMemory::launch_loops(const Buffer& gradient) {
  constexpr int kUnroll = LbfgsLayout::kProductsUnroll;
  constexpr int64_t kSlopeRow = kLbfgsStartSlope - kLbfgsFirstRow;
  int64_t from = layout_.rows(), to = from + 1;  // two rows of their own, in turn
  const auto pass = [&](LbfgsLoop loop, int64_t age) {
    device().launch(lbfgs_loop(layout_, loop), {LbfgsLayout::chunks(layout_.size, kUnroll)}, gradient,
                    layout_.scaled ? diagonal_ : gradient, s_, y_, memory_, coefficients_, step_, partial_,
                    age, from, loop == LbfgsLoop::last ? kSlopeRow : to,
                    LbfgsLayout::chunk(layout_.size, kUnroll));
    std::swap(from, to);
  };
  const int64_t oldest = layout_.history - 1;
  device().launch(lbfgs_take(layout_), {1}, numbers_, memory_, coefficients_);
  for (int64_t age = 0; age <= oldest; ++age) pass(age == 0 ? LbfgsLoop::first : LbfgsLoop::down, age);
  pass(LbfgsLoop::turn, oldest);
  for (int64_t age = oldest - 1; age >= 0; --age) pass(LbfgsLoop::up, age);
  pass(LbfgsLoop::last, 0);
}

void LbfgsMemory::launch_products(const Buffer& gradient, LbfgsPass pass) {
  constexpr int kUnroll = LbfgsLayout::kProductsUnroll;
  const int64_t parts = pass == LbfgsPass::probe ? 1 : layout_.parts();
  device().launch(lbfgs_products(layout_, pass), {LbfgsLayout::chunks(layout_.size, kUnroll), parts},
                  gradient, earlier_, step_, layout_.scaled ? diagonal_ : gradient, s_, y_, memory_, partial_,
                  LbfgsLayout::chunk(layout_.size, kUnroll));
}

void LbfgsMemory::launch_totals() {
  device().launch(lbfgs_totals(layout_), {layout_.rows()}, partial_.rows(0, layout_.rows()),
                  objective_.value(), memory_, numbers_);
}

void LbfgsMemory::launch_trial(LbfgsPass pass) {
  constexpr int kUnroll = LbfgsLayout::kProductsUnroll;
  objective_.launch(step_);
  const Buffer trial = objective_.trial(), counted = objective_.counted();
  device().launch(lbfgs_squares(layout_, bool(counted)),
                  {LbfgsLayout::chunks(layout_.numbers_of_point, kUnroll)}, trial, counted ? counted : trial,
                  partial_, LbfgsLayout::chunk(layout_.numbers_of_point, kUnroll));
  launch_products(objective_.gradient(), pass);
  launch_totals();
  probed_ = pass == LbfgsPass::probe;
}

LbfgsTrial LbfgsMemory::read() const {
  const std::vector<double> n = download_numbers(device(), numbers_);
  LbfgsTrial out;
  out.value = n[kLbfgsCost];
  out.start_slope = n[kLbfgsStartSlope];
  out.slope = n[kLbfgsGS];
  out.step_norm = std::sqrt(n[kLbfgsSS]);
  out.gradient_max =
      std::isnan(n[kLbfgsGWG]) ? std::numeric_limits<double>::quiet_NaN() : n[kLbfgsGradientMax];
  out.point_norm = std::sqrt(n[kLbfgsStateSquare]);
  out.pairs = int(n[kLbfgsPairs]);
  return out;
}

LbfgsTrial LbfgsMemory::advance() {
  has_direction_ = probed_ = false;
  const auto work = [&] {
    launch_direction(earlier_);
    launch_trial(LbfgsPass::trial);
  };
  if (recorded_) {
    device().replay(graph_);
  } else if (!objective_.recordable()) {
    work();
  } else {
    work();  // compiles every kernel and fills every scratch buffer before the recording
    graph_ = device().record(work);
    recorded_ = true;
  }
  return read();
}

LbfgsTrial LbfgsMemory::trial(double t) {
  if (!has_direction_) {  // so far the step is the direction
    if (!direction_) direction_ = device().allocate(layout_.real, {layout_.size});
    device().copy(step_, direction_);
    has_direction_ = true;
  }
  device().launch(lbfgs_step(layout_), {layout_.size}, direction_, step_,
                  layout_.real == Storage::f64 ? t : double(float(t)));
  launch_trial(LbfgsPass::probe);
  return read();
}

void LbfgsMemory::accept() {
  if (probed_) {
    launch_products(objective_.gradient(), LbfgsPass::trial);
    launch_totals();
    probed_ = false;
  }
  constexpr int kUnroll = LbfgsLayout::kProductsUnroll;
  const int64_t most = std::max(layout_.size, layout_.numbers_of_point);
  device().launch(lbfgs_accept(layout_), {LbfgsLayout::chunks(most, kUnroll)}, objective_.gradient(),
                  earlier_, objective_.trial(), objective_.point(), LbfgsLayout::chunk(most, kUnroll));
  objective_.accepted();
}

LineResult LbfgsMemory::search(const LinePoint& start, double rounding, LbfgsTrial& last) {
  WolfeConditions conditions;
  conditions.rounding = rounding;
  bool first = true;
  const auto phi = [&](double t) {
    if (!first) last = trial(t);  // the first was made with the direction
    first = false;
    return LinePoint{t, last.value, last.slope / t};
  };
  return strong_wolfe(phi, start, 1, conditions);
}

int LbfgsMemory::find_direction(const Buffer& gradient) {
  launch_products(gradient, LbfgsPass::stored);
  launch_totals();
  launch_direction(gradient);
  return int(download_numbers(device(), memory_)[1]);
}

LbfgsTrial LbfgsMemory::try_step() {
  launch_trial(LbfgsPass::trial);
  return read();
}

void LbfgsMemory::save(std::vector<double>& scalars, std::vector<std::vector<double>>& vectors) const {
  const std::vector<double> memory = download_numbers(device(), memory_),
                            numbers = download_numbers(device(), numbers_);
  scalars = {double(layout_.history)};
  scalars.insert(scalars.end(), memory.begin(), memory.end());
  scalars.insert(scalars.end(), numbers.begin(), numbers.end());
  // The slots in use: that of the trial, and those before it.
  const int slots = layout_.slots(), pairs = int(memory[1]);
  for (int age = 0; age <= pairs; ++age) {
    const int slot = (int(memory[0]) + slots - age) % slots;
    for (const Buffer& b : {s_, y_}) vectors.push_back(download_numbers(device(), b.rows(slot, 1)));
  }
  if (layout_.scaled) vectors.push_back(download_numbers(device(), diagonal_));
}

void LbfgsMemory::restore(const std::vector<double>& scalars,
                          const std::vector<std::vector<double>>& vectors) {
  const auto put = [&](const double* from, const Buffer& to) {
    const Buffer staged = device().allocate(to.storage(), {to.elements()});
    write_numbers(device(), std::span(from, size_t(to.elements())), staged);
    device().copy(staged, to.reshape({to.elements()}));
  };
  if (layout_.scaled && !vectors.empty()) put(vectors.back().data(), diagonal_);
  const size_t expected = size_t(1 + layout_.memory() + layout_.numbers());
  if (scalars.size() != expected || scalars[0] != layout_.history) return begin();
  device().copy(objective_.gradient(), earlier_);
  put(scalars.data() + 1, memory_);
  put(scalars.data() + 1 + layout_.memory(), numbers_);
  const int slots = layout_.slots(), pairs = int(scalars[2]);
  for (int age = 0; age <= pairs; ++age) {
    const int slot = (int(scalars[1]) + slots - age) % slots;
    put(vectors[size_t(2 * age)].data(), s_.rows(slot, 1));
    put(vectors[size_t(2 * age + 1)].data(), y_.rows(slot, 1));
  }
}

}  // namespace lockstep::optimize
