// The predictive trainer in the loop of train().
#include "lockstep/forecast/train.hpp"

namespace lockstep::forecast {

namespace {

class PredictivePolicy final : public StepPolicy, private Trainee {
 public:
  PredictivePolicy(const TrainingView& view, const PredictOptions& options)
      : view_(view), trainer_(*this, seeded(options, view.seed)) {}

  void step(TrainingView& view, int64_t, const Buffer& loss) override {
    const double value = trainer_.step().loss;
    const Device& device = view.model.device();
    if (loss.storage() == Storage::f64) return device.write(loss, &value, sizeof value);
    const float narrow = float(value);
    device.write(loss, &narrow, sizeof narrow);
  }
  void evaluate(const std::function<void()>& work) override { trainer_.evaluate(work); }
  int64_t jumps() const override { return trainer_.totals().jumps; }
  int64_t accepted() const override { return trainer_.totals().accepted; }
  std::vector<std::pair<std::string, double>> figures() const override {
    const Totals& t = trainer_.totals();
    return {{"rollbacks", double(t.rollbacks)},
            {"forwards", double(t.forwards)},
            {"gain_steps", t.gain_steps},
            {"overhead_steps", t.overhead_steps},
            {"overhead_seconds", t.overhead_seconds}};
  }
  std::vector<std::pair<std::string, Array>> state() const override { return trainer_.state(); }
  void restore(const std::vector<std::pair<std::string, Array>>& state) override { trainer_.restore(state); }

 private:
  static PredictOptions seeded(PredictOptions options, uint64_t seed) {
    options.seed += seed;
    return options;
  }

  nn::TrainableModel& model() override { return view_.model; }
  void launch_step(uint64_t step, double rate_factor, const Buffer& loss) override {
    view_.model.launch_gradient(view_.batch(int64_t(step)), loss, step);
    // By the number of the step: a rollback takes the optimiser's count back, the schedule continues.
    view_.optimizer.launch_step(view_.model.gradient(),
                                rate_factor * view_.optimizer.options().schedule.at(int64_t(step)));
  }
  void launch_held_out(const Buffer& loss) override { view_.model.launch_loss(view_.held, loss); }
  int64_t held_out_examples() const override { return view_.held.size; }
  int64_t batch_examples() const override { return view_.batch_size; }
  std::vector<Buffer> moments() const override {
    if (view_.optimizer.options().method == optimize::Method::sgd) return {view_.optimizer.first()};
    return {view_.optimizer.first(), view_.optimizer.second()};
  }
  std::vector<double> numbers() const override {
    return {double(view_.optimizer.steps()), double(view_.optimizer.moment_steps())};
  }
  void restore_numbers(std::span<const double> numbers) override {
    view_.optimizer.set_steps(int64_t(numbers[0]), int64_t(numbers[1]));
  }
  void forget_moments() override { view_.optimizer.forget_moments(); }

  const TrainingView& view_;
  PredictiveTrainer trainer_;
};

}  // namespace

PolicyFactory predictive_policy(const PredictOptions& options) {
  return [options](const TrainingView& view) -> std::unique_ptr<StepPolicy> {
    return std::make_unique<PredictivePolicy>(view, options);
  };
}

}  // namespace lockstep::forecast
