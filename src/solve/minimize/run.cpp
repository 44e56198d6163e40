#include "solve/minimize/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/minimize/methods/vector_ops.hpp"
#include "solve/minimize/order.hpp"
#include "solve/model/added_numbers.hpp"
#include "solve/model/problem.hpp"
#include "solve/reference.hpp"

namespace lockstep::solve {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Whether x is at a bound: the state rounds to its storage, and so does adding a step that was cut there.
bool at_bound(double x, double bound, Storage storage) {
  const double rounding = storage == Storage::f64 ? std::numeric_limits<double>::epsilon()
                                                  : double(std::numeric_limits<float>::epsilon());
  return std::isfinite(bound) && std::abs(x - bound) <= 4 * rounding * std::max(std::abs(x), std::abs(bound));
}

}  // namespace

Run::Run(Problem& problem, Context& context, const Options& options, Linear linear, bool on_cpu)
    : problem_(problem),
      context_(context),
      options_(options),
      ranks_(options.ranks.value_or(parallel::Group())),
      linear_(linear),
      order_(elimination_order(problem, options)),
      on_cpu_(on_cpu) {
  if (options.parts > 1) parted_ = std::make_unique<PartedProblem>(problem, linear, options.parts, ranks_);
  if (!options.inner_groups.empty()) inner_ = std::make_unique<InnerIterations>(problem, options);
  const Problem::State& state = problem.state();
  const auto infinite = [](const std::vector<double>& v) {
    return std::all_of(v.begin(), v.end(), [](double b) { return std::isinf(b); });
  };
  held_ = state.held;
  const bool bounds = !state.lower.empty() && !(infinite(state.lower) && infinite(state.upper));
  if (!bounds && held_.empty()) return;
  lower_.assign(size_t(state.tangent), -INFINITY);
  upper_.assign(size_t(state.tangent), INFINITY);
  ambient_of_.assign(size_t(state.tangent), -1);
  if (!bounds) return;
  for (const SetState& set : state.sets) {
    const int ambient = set.ambient();
    const auto bound_begin = int64_t(set.first_ambient), bound_end = bound_begin + set.count * ambient;
    const auto free = [&](const std::vector<double>& bounds) {
      return std::all_of(bounds.begin() + bound_begin, bounds.begin() + bound_end,
                         [](double b) { return std::isinf(b); });
    };
    if (free(state.lower) && free(state.upper)) continue;
    const auto added = added_numbers(*set.manifold);
    for (int64_t k = bound_begin; k < bound_end; ++k) {
      const int64_t place = k - bound_begin;
      const auto& own = added[size_t(place % ambient)];
      if (!own || (std::isinf(state.lower[size_t(k)]) && std::isinf(state.upper[size_t(k)]))) continue;
      const size_t tangent = size_t(set.first_tangent + place / ambient * set.tangent() + own->coordinate);
      lower_[tangent] = state.lower[size_t(k)], upper_[tangent] = state.upper[size_t(k)];
      ambient_of_[tangent] = k;
    }
  }
}

double Run::seconds() const { return since(start_); }

void Run::refuse_fallback() const {
  if (ranks().size() > 1)
    throw parallel::GroupError("a device failed during a minimisation that is divided into parts", "solve",
                               "a working device, because the other ranks cannot repeat their part")
        .with_hint("the same command resumes from its --checkpoint; --device cpu needs no other device");
}

void Run::stage(const char* name, const std::function<void()>& work) {
  const auto start = Clock::now();
  double& spent = name == std::string_view("solve.linear") ? linear_seconds : evaluate_seconds;
  const auto add_time = [&] { spent += since(start); };
  try {
    if (on_cpu_) {
      context_.run_stage_on_cpu(name, [&](const Device&) { work(); });
    } else {
      bool again = false;
      context_.run_stage(name, [&](const Device&) {
        if (again) {
          refuse_fallback();
          on_cpu_ = true;
          throw Restart{};
        }
        again = true;
        work();
      });
    }
  } catch (...) {
    add_time();
    throw;
  }
  add_time();
}

unsigned Run::uses() const {
  switch (options_.method) {
    case Method::lm:
    case Method::gn:
    case Method::dogleg:
    case Method::newton:
      return kUseLinearize | kUseProduct |
             (iterative(linear_) || linear_ == Linear::device_cholesky ? 0u : unsigned(kUseHost)) |
             (iterative(linear_) || options_.method == Method::dogleg ? unsigned(kUseDiagonal) : 0u);
    default: return kUseGradient;
  }
}

void Run::describe(Summary& summary) const {
  const Device& device = evaluator().device();
  const DeviceCounters now = device.counters();
  summary.device = device.info().name;
  summary.batches = evaluator().batch_reports();
  summary.scratch_bytes = evaluator().scratch_bytes();
  summary.kernels_compiled = now.kernels_compiled - before_.kernels_compiled;
  summary.cache_hits = now.cache_hits - before_.cache_hits;
  summary.kernel_reports.clear();
  // A report for each kernel that was compiled or fetched; the device copies all it has.
  if (const int64_t fresh = summary.kernels_compiled + summary.cache_hits; fresh > 0) {
    summary.kernel_reports = device.kernels();
    const int64_t all = int64_t(summary.kernel_reports.size());
    summary.kernel_reports.erase(summary.kernel_reports.begin(),
                                 summary.kernel_reports.begin() + std::max<int64_t>(all - fresh, 0));
  }
  summary.bytes_to_device = now.bytes_to_device - before_.bytes_to_device;
  summary.bytes_from_device = now.bytes_from_device - before_.bytes_from_device;
}

void Run::open(std::span<const double> state) {
  const auto build = [&](const Device& device) {
    tables_ = KeptTables::take(problem_);
    before_ = device.counters();
    EvaluatorOptions options{options_.batch_size, uses()};
    if (parted_) options.parts = &parted_->layout();
    if (tables_ && tables_->evaluates_on(device, options_.precision, options)) {
      tables_->evaluator->update(problem_);
    } else {
      tables_ = std::make_shared<KeptTables>();
      tables_->evaluator = std::make_unique<Evaluator>(evaluated(), device, options_.precision, options);
    }
    evaluator().set_prepare(prepare());
    evaluator().set_state(parted_ ? parted_->own_state(state) : std::vector(state.begin(), state.end()));
  };
  const auto start = Clock::now();
  if (on_cpu_) {
    context_.run_stage_on_cpu("solve.evaluate", build);
  } else {
    bool again = false;
    context_.run_stage("solve.evaluate", [&](const Device& device) {
      if (again) refuse_fallback();
      on_cpu_ = again;
      again = true;
      build(device);
    });
  }
  evaluate_seconds += since(start);
}

Evaluator::Prepare Run::prepare() {
  if (!options_.prepare) return {};
  return [this](std::span<const double> at, bool derivatives) {
    std::vector<double>& values = problem_.state().values;
    const struct Guard {
      std::vector<double>& values;
      std::vector<double> kept;
      ~Guard() { values = std::move(kept); }
    } guard{values, std::exchange(values, {at.begin(), at.end()})};
    options_.prepare(derivatives);
  };
}

LinearSolver& Run::linear_solver() {
  KeptTables& t = *tables_;
  const bool fits = t.solver && t.order == order_ && t.linear == linear_ && t.bounded == bounded() &&
                    t.max_linear_iterations == options_.max_linear_iterations;
  if (!fits) {
    t.solver = make_linear_solver(linear_, options_.max_linear_iterations);
    t.solver->set_order(order_);
    t.order = order_, t.linear = linear_, t.bounded = bounded(),
    t.max_linear_iterations = options_.max_linear_iterations;
    solve([&] { t.solver->compile_ahead(evaluator()); });
  }
  t.solver->set_damping(options_.damping == Damping::identity ? DampingRange{1, 1} : DampingRange{});
  return *t.solver;
}

void Run::keep() {
  if (!parted_) KeptTables::keep(problem_, std::move(tables_));
}

Buffer Run::vector() const {
  const Buffer buffer = device().allocate(evaluator().real(), {evaluator().tangent_size()});
  device().clear(buffer);
  return buffer;
}

std::vector<double> Run::state() const {
  return parted_ ? parted_->whole_state(evaluator().state()) : evaluator().state();
}

double Run::dot(const Buffer& x, const Buffer& y) const {
  const Evaluator::State& s = evaluator().internals();
  if (!parted_) return solve::dot(device(), x, y);
  return s.parts->total(s.parts->shared().tangent, s.sets.back().tangent(), [&](int64_t first, int64_t n) {
    return solve::dot(device(), x.rows(first, n), y.rows(first, n));
  });
}
double Run::norm(const Buffer& x) const { return parted_ ? std::sqrt(dot(x, x)) : solve::norm(device(), x); }

bool Run::has_energies() const {
  const std::vector<Batch>& batches = problem_.state().batches;
  return std::any_of(batches.begin(), batches.end(), [](const Batch& b) { return b.expression->energy; });
}

std::string Run::describe_not_finite() const {
  const std::vector<double> values = reference::residuals<double>(problem_, problem_.state().values);
  const std::vector<Batch>& batches = problem_.state().batches;
  size_t at = 0;
  for (size_t b = 0; b < batches.size(); ++b)
    for (int64_t i = 0; i < batches[b].instances; ++i)
      for (int k = 0; k < batches[b].expression->rows; ++k, ++at)
        if (!std::isfinite(values[at])) return name_of(b, i);
  return "the sum of all costs";
}

std::string Run::name_of(size_t batch, int64_t place) const {
  const auto [name, instance] = problem_.state().origin(batch, place);
  return fmt::format("instance {} of {}", instance, name);
}

std::string Run::describe_derivatives() {
  if (parted_ || !(uses() & kUseLinearize)) return "the derivatives are not finite";
  std::vector<HostBatch> parts;
  evaluate([&] { parts = evaluator().host_batches(); });
  const std::vector<BatchState>& laid_out = evaluator().internals().batches;
  const std::vector<Batch>& batches = problem_.state().batches;
  size_t batch = 0;
  int64_t first = 0;  // of the part, in its batch
  for (size_t k = 0; k < parts.size(); ++k) {
    while (batch < batches.size() && first >= batches[batch].instances) first = 0, ++batch;
    const HostBatch& part = parts[k];
    const auto finite = [](const std::vector<double>& all, int64_t begin, int64_t count) {
      return std::all_of(all.begin() + begin, all.begin() + begin + count,
                         [](double v) { return std::isfinite(v); });
    };
    const int64_t columns = laid_out[k].term->columns(), rows = part.rows;
    for (int64_t i = 0; i < part.instances; ++i)
      if (!finite(part.residuals, i * rows, rows) ||
          !finite(part.jacobian, i * rows * columns, rows * columns))
        return fmt::format("the derivatives of {} are not finite", name_of(batch, first + i));
    first += part.instances;
  }
  return "the derivatives are not finite";
}

std::vector<uint8_t> Run::held() {
  const std::vector<double> x = evaluator().state(), g = to_host(device(), evaluator().gradient());
  const Storage storage = evaluator().internals().values.state;
  std::vector<uint8_t> out(g.size(), 0);
  for (size_t k = 0; k < g.size(); ++k) {
    out[k] = !held_.empty() && held_[k];
    if (out[k] || ambient_of_[k] < 0) continue;
    const double value = x[size_t(ambient_of_[k])];
    out[k] = (g[k] > 0 && at_bound(value, lower_[k], storage)) ||
             (g[k] < 0 && at_bound(value, upper_[k], storage)) || lower_[k] == upper_[k];
  }
  return out;
}

void Run::project(const Buffer& step) {
  const std::vector<double> x = evaluator().state();
  std::vector<double> s = to_host(device(), step);
  for (size_t k = 0; k < s.size(); ++k) {
    if (!held_.empty() && held_[k]) s[k] = 0;
    if (ambient_of_[k] < 0) continue;
    const double value = x[size_t(ambient_of_[k])];
    s[k] = std::clamp(s[k], std::min(0.0, lower_[k] - value), std::max(0.0, upper_[k] - value));
  }
  to_device(device(), s, step);
}

double Run::improve(double cost) {
  if (!inner_ || !std::isfinite(cost)) return cost;
  std::vector<double> start;
  evaluate([&] { start = evaluator().candidate(); });
  std::vector<double> found = start;
  inner_->improve(found, context_, on_cpu_, prepare());
  double lower = cost;
  evaluate([&] {
    evaluator().set_prepare(prepare());
    lower = evaluator().try_state(found);
    if (!(lower < cost)) lower = evaluator().try_state(start);
  });
  return lower;
}

double Run::gradient_max() {
  if (!bounded()) {
    const double largest = max_abs(device(), evaluator().gradient());
    return parted_ ? evaluator().internals().parts->largest(largest) : largest;
  }
  const std::vector<uint8_t> out = held();
  const std::vector<double> g = to_host(device(), evaluator().gradient());
  double largest = 0;
  for (size_t k = 0; k < g.size(); ++k) {
    if (std::isnan(g[k])) return g[k];
    if (!out[k]) largest = std::max(largest, std::abs(g[k]));
  }
  return largest;
}

bool Run::vanished(double cost) const {
  constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();
  return !has_energies() && cost <= kRounding * kRounding * initial_cost;
}

bool Run::stationary(double gradient_max, double cost) const {
  const double limit = options_.gradient_tolerance * initial_gradient;
  return gradient_max <= (has_energies() ? limit : limit * std::sqrt(cost / initial_cost));
}

bool Run::small_in_each_set(const Buffer& step, double tolerance) {
  const std::vector<double> x = evaluator().state(), s = to_host(device(), step);
  const Problem::State& state = evaluated().state();
  for (const SetState& set : state.sets) {
    const int ambient = set.ambient(), tangent = set.tangent();
    const bool split = parted_ && parted_->layout().split && &set == &state.sets.back();
    const bool each =
        !split && set.count == 1 && ambient == tangent && set.manifold->manifold.unit_vectors.empty();
    bool small = true;  // each number
    const auto squares = [&](int64_t begin, int64_t end) {
      std::vector<double> sums{0, 0};  // of the step, of the values
      for (int64_t b = begin; b < end; ++b) {
        if (state.fixed[size_t(set.first_block + b)]) continue;
        for (int k = 0; k < tangent; ++k) {
          const double d = s[size_t(set.first_tangent + b * tangent + k)];
          small &= !each || std::abs(d) <= tolerance * std::abs(x[size_t(set.first_ambient + k)]);
          sums[0] += d * d;
        }
        for (int k = 0; k < ambient; ++k) {
          const double v = x[size_t(set.first_ambient + b * ambient + k)];
          sums[1] += v * v;
        }
      }
      return sums;
    };
    std::vector<double> sums;
    if (split) {
      const std::vector<int64_t>& first = parted_->layout().first_block;
      std::vector<double> mine;
      for (size_t k = 0; k + 1 < first.size(); ++k) {
        const std::vector<double> own = squares(first[k], first[k + 1]);
        mine.insert(mine.end(), own.begin(), own.end());
      }
      sums = ranks().sum<double>(parted_->layout().parts, mine);
    } else {
      sums = squares(0, set.count);
    }
    if (each ? !small : sums[0] > tolerance * tolerance * sums[1]) return false;
  }
  return true;
}

}  // namespace lockstep::solve
