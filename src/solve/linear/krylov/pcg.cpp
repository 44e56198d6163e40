// Conjugate gradients on the damped normal equations.
#include <fmt/format.h>

#include "solve/linear/krylov/conjugate_gradients.hpp"

namespace lockstep::solve {

namespace {

template <class T>
const Kernel& negate_kernel() {
  static const Kernel k = kernel(fmt::format("solve.negate.{}", name(lockstep::detail::kType<T>)),
                                 [](At<1> at, Grid<T, 1> x, Out<T, 1> y) { y[at] = -x[at]; });
  return k;
}

class PcgSolver : public LinearSolver {
 public:
  explicit PcgSolver(int max_iterations) : max_iterations_(max_iterations) {}

  void hold(std::vector<uint8_t> held) override { held_.set(std::move(held)); }

  void compile_ahead(const Evaluator& evaluator) const override {
    const Evaluator::State& s = evaluator.internals();
    const bool wide = s.values.real == Storage::f64;
    s.compile([wide] { return wide ? negate_kernel<f64>() : negate_kernel<f32>(); });
    for (const SetState& set : s.sets)
      for (const auto& make : block_kernels(s, set, false)) s.compile(make);
    for (const auto& make : ConjugateGradients::kernels(s.values.real)) s.compile(make);
  }

  void prepare(Evaluator& evaluator) override {
    const Evaluator::State& s = evaluator.internals();
    held_.upload(s.device, s.tangent);
    if (!cg_ || evaluator_id_ != s.id) build(evaluator);
    for (const BlockPart& part : cg_->parts()) held_.leave_out(part);
  }

  LinearResult solve(Evaluator& evaluator, double lambda, double forcing, const Buffer& step) override {
    const Device& device = evaluator.device();
    evaluator.internals().ahead->check();
    cg_->set_parameters(lambda, forcing, max_iterations_, damping_);
    for (const BlockPart& part : cg_->parts()) invert_blocks(device, part, cg_->parameters());
    device.launch(right_.storage() == Storage::f64 ? negate_kernel<f64>() : negate_kernel<f32>(),
                  {evaluator.tangent_size()}, evaluator.gradient(), right_);
    held_.clear_in(right_);
    return cg_->solve(right_, step);
  }

 private:
  void build(Evaluator& evaluator) {
    const Evaluator::State& s = evaluator.internals();
    evaluator_id_ = s.id;
    const Device device = s.device;
    right_ = device.allocate(s.values.real, {s.tangent});
    cg_ = std::make_unique<ConjugateGradients>(
        device, s.values.real, s.tangent, block_parts(s),
        [this, &evaluator](const Buffer& p, const Buffer& q) {
          evaluator.multiply(p, q);
          cg_->add_damping(evaluator.diagonal(), p, q);
          held_.clear_in(q);
        },
        s.multiplies_on_host());
  }

  int max_iterations_;
  HeldCoordinates held_;
  uint64_t evaluator_id_ = 0;
  std::unique_ptr<ConjugateGradients> cg_;
  Buffer right_;
};

}  // namespace

std::unique_ptr<LinearSolver> make_pcg_solver(int max_iterations) {
  return std::make_unique<PcgSolver>(std::max(1, max_iterations));
}

}  // namespace lockstep::solve
