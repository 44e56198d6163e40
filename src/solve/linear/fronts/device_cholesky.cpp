// The damped normal equations by a sparse Cholesky factorisation on the evaluator's device.
#include <fmt/format.h>

#include <optional>

#include "solve/linear/fronts/front_cholesky.hpp"
#include "solve/linear/fronts/normal_values.hpp"

namespace lockstep::solve {
namespace {

/// Pivots below this part of their diagonal element mean a singular matrix.
double least_pivot(Storage real) { return real == Storage::f64 ? 1e-16 : 6e-8; }

class DeviceCholesky final : public LinearSolver {
 public:
  void hold(std::vector<uint8_t> held) override { held_ = std::move(held); }

  void compile_ahead(const Evaluator& evaluator) const override {
    const Evaluator::State& s = evaluator.internals();
    const Storage real = s.values.real;
    for (const auto& make : NormalValues::kernels(real)) s.compile(make);
    for (int k = 0; k < kFrontSteps; ++k) s.compile([=] { return front_kernel(FrontStep(k), real); });
  }

  void prepare(Evaluator& evaluator) override {
    const Evaluator::State& s = evaluator.internals();
    if (!cholesky_ || evaluator_id_ != s.id) {
      evaluator_id_ = s.id;
      const NormalEquations equations(evaluator.host_batches(false));
      normal_ = NormalValues(evaluator, equations);
      std::vector<int32_t> groups = equations.of_blocks(order_);
      if (!cholesky_ || pattern_ != equations.pattern() || groups_ != groups)
        cholesky_.emplace(s.device, evaluator.real(), equations.pattern(), groups);
      pattern_ = equations.pattern(), groups_ = std::move(groups);
    }
    if (!held_.empty()) normal_.hold(held_);
    s.ahead->check();
    normal_.assemble(evaluator, cholesky_->values());
  }

  LinearResult solve(Evaluator& evaluator, double lambda, double, const Buffer& step) override {
    normal_.damp(lambda, damping_, cholesky_->values(), evaluator.gradient(), cholesky_->added(),
                 cholesky_->x());
    cholesky_->run();
    normal_.scatter(cholesky_->x(), step);
    const FrontCholesky::Outcome outcome = cholesky_->outcome();
    if (!outcome.ok())
      return {
          false, 0,
          fmt::format("J^T J is not positive definite (front {}, column {})", outcome.front, outcome.column)};
    if (!(outcome.least_pivot > least_pivot(evaluator.real())))
      return {false, 0, "J^T J is not positive definite"};
    return {true, 1, ""};
  }
  int64_t bytes() const override { return cholesky_ ? int64_t(cholesky_->bytes()) : 0; }

 private:
  uint64_t evaluator_id_ = 0;
  std::vector<uint8_t> held_;
  BlockPattern pattern_;
  std::vector<int32_t> groups_;  // of the order, by block
  NormalValues normal_;
  std::optional<FrontCholesky> cholesky_;
};

}  // namespace

std::unique_ptr<LinearSolver> make_device_cholesky() { return std::make_unique<DeviceCholesky>(); }

}  // namespace lockstep::solve
