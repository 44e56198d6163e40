#include "lockstep/kernel.hpp"
#include "random_kernels.hpp"

namespace lockstep::testing {

namespace {

using fuzz::Random;

constexpr int kLanes = 8, kGroups = 3, kAll = kLanes * kGroups;

class GroupGenerator {
 public:
  explicit GroupGenerator(uint64_t seed) : random_(seed) {}

  GradientCase run() {
    Random values(random_.next());
    const Kernel k =
        kernel("random.groups",
               [&](Group<1> g, Grid<f64, 1> x, Grid<i32, 1> n, InOut<f64, 1> state, Out<f64, 1> y,
                   Param<f64> p, Param<i32> passes) { trace(g, x, n, state, y, p, passes); },
               {.group = {kLanes, 1, 1}});
    GradientCase c{k, {kGroups}, {}, {{"p0", 0.4}, {"p1", double(values.below(4))}}, {{}, {}}};
    const auto doubles = [&] {
      std::vector<double> v;
      for (int j = 0; j < kAll; ++j) v.push_back(double(values.below(2000)) / 1000 - 1);
      return v;
    };
    std::vector<int32_t> counts;
    for (int j = 0; j < kAll; ++j) counts.push_back(values.below(5));
    c.f64s("b0", doubles()).put<int32_t>("b1", counts).f64s("b2", doubles()).f64s("b3", doubles());
    return c;
  }

 private:
  using Value = Val<f64>;
  struct Here {
    InOut<f64, 1> state;
    Param<i32> passes;
    Val<i32> global, lane, count;
  };

  void trace(const Group<1>& g, const Grid<f64, 1>& x, const Grid<i32, 1>& n, const InOut<f64, 1>& state,
             const Out<f64, 1>& y, const Param<f64>& p, const Param<i32>& passes) {
    const SharedArray<f64> first(kLanes), second(kLanes);
    const Here here{state, passes, g.global(), g.lane(), n(g.global())};
    here_ = &here;
    arrays_ = {&first, &second};
    values_ = {Value(x(here.global)), Value(p), x((here.global * 5 + 3) % kAll)};
    variables_ = {Var<f64>(Value(x(here.global))), Var<f64>(Value(p))};
    for (const auto* array : arrays_) (*array)[here.lane] = sin(values_[0] * 1.7);
    barrier();
    updates_ = random_.chance(50);
    if (updates_) state(here.global) = sin(state(here.global) * 1.1);
    budget_ = 5 + random_.below(10);
    while (budget_ > 0) statement(0, true);
    y(here.global) = Value(variables_[0]) * Value(variables_[1]) + pick();
    values_.clear();
    variables_.clear();
  }

  Value pick() { return random_.of(values_); }
  Value bounded(const Value& v) { return random_.chance(50) ? sin(v) : tanh(v); }
  Value operation() {
    const Value a = pick(), b = pick();
    switch (random_.below(6)) {
      case 0: return a + 0.7 * b;
      case 1: return a * b;
      case 2: return a / (1.5 + b * b);
      case 3: return exp(-(a * a)) * b;
      case 4: return select(here_->count > random_.below(4), a, 0.5 * b);
      default: return sqrt(1.0 + a * a) - b;
    }
  }
  /// `together`: all lanes of the group are here.
  void statement(int depth, bool together) {
    --budget_;
    const int kind = random_.below(100);
    if (kind < 25) {
      values_.push_back(bounded(operation()));
    } else if (kind < 40) {
      random_.of(variables_) = bounded(operation());
    } else if (kind < 50) {
      values_.push_back(Value(random_.of(variables_)));
    } else if (kind < 56 && updates_) {
      here_->state(here_->global) = bounded(here_->state(here_->global) * 1.1 + pick());
    } else if (kind < 72 && together) {
      exchange();
    } else if (kind < 82 && together) {
      reduction();
    } else if (depth < 3) {
      flow(depth, together);
    }
  }
  /// Elements are stored by one lane each and read by others behind a barrier; some more than once.
  void exchange() {
    const SharedArray<f64>& array = *random_.of(arrays_);
    const bool again = random_.chance(40);
    barrier();
    array[(here_->lane * 3 + random_.below(kLanes)) % kLanes] = bounded(pick());
    if (again) {
      barrier();
      array[here_->lane] = bounded(Value(array[here_->lane]) + 0.3 * pick());
    }
    barrier();
    values_.push_back(array[(here_->lane + random_.below(kLanes)) % kLanes]);
    if (random_.chance(40)) values_.push_back(array[here_->count] * pick());
    barrier();
  }
  void reduction() {
    const Value v = bounded(operation());
    switch (random_.below(3)) {
      case 0: return values_.push_back(0.2 * group_sum(v));
      case 1: return values_.push_back(group_min(v));
      default: return values_.push_back(group_max(v));
    }
  }
  void flow(int depth, bool together) {
    const auto inside = [&](bool all) { return [this, depth, all] { block(depth + 1, all); }; };
    switch (random_.below(together ? 4 : 2)) {
      case 0: return if_(here_->count > random_.below(5), inside(false), inside(false));
      case 1: return for_(0, here_->count, [&](const Val<i32>&) { block(depth + 1, false); });
      case 2: return if_(group_sum(pick()) > 0.3, inside(true), inside(true));
      default:
        return for_(0, Val<i32>(here_->passes), [&](const Val<i32>& k) {
          const size_t mark = values_.size();
          values_.push_back(bounded(cast<f64>(k) * pick()));
          block(depth + 1, true);
          values_.resize(mark, Value(0.0));
        });
    }
  }
  void block(int depth, bool together) {
    const size_t mark = values_.size();
    const int count = 1 + random_.below(3);
    for (int k = 0; k < count && budget_ > 0; ++k) statement(depth, together);
    random_.of(variables_) = bounded(pick());
    while (values_.size() > mark) values_.pop_back();
  }

  Random random_;
  std::vector<const SharedArray<f64>*> arrays_;
  const Here* here_ = nullptr;
  std::vector<Value> values_;
  std::vector<Var<f64>> variables_;
  int budget_ = 0;
  bool updates_ = false;
};

}  // namespace

GradientCase random_group_case(uint64_t seed) { return GroupGenerator(seed).run(); }

}  // namespace lockstep::testing
