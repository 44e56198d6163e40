#include "random_kernels.hpp"

#include "lockstep/kernel.hpp"

namespace lockstep::testing {

namespace {

using fuzz::Random;

constexpr int kPoints = 5, kElements = 7, kArray = 4;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  GradientCase run() {
    uint64_t data = random_.next();
    const Kernel k =
        kernel("random", [&](At<1> at, Grid<f64, 1> x, Grid<f64, 1> far, Grid<i32, 1> n, InOut<f64, 1> state,
                             Out<f64, 2> y, Param<f64> p) { trace(at, x, far, n, state, y, p); });
    GradientCase c{k, {kPoints}, {}, {{"p0", 0.4}}, {{}, {}}};
    Random values(data);
    const auto doubles = [&](int count) {
      std::vector<double> v;
      for (int j = 0; j < count; ++j) v.push_back(double(values.below(2000)) / 1000 - 1);
      return v;
    };
    std::vector<int32_t> counts;
    for (int j = 0; j < kPoints; ++j) counts.push_back(values.below(kElements));
    c.f64s("b0", doubles(kPoints)).f64s("b1", doubles(kElements)).put<int32_t>("b2", counts);
    c.f64s("b3", doubles(kPoints)).f64s("b4", doubles(2 * kPoints), {kPoints, 2});
    return c;
  }

 private:
  using Value = Val<f64>;
  struct Place {
    At<1> at;
    Grid<f64, 1> x, far;
    Grid<i32, 1> n;
    InOut<f64, 1> state;
    Out<f64, 2> y;
    LocalArray<f64> array;
  };

  void trace(const At<1>& at, const Grid<f64, 1>& x, const Grid<f64, 1>& far, const Grid<i32, 1>& n,
             const InOut<f64, 1>& state, const Out<f64, 2>& y, const Param<f64>& p) {
    const Place place{at, x, far, n, state, y, LocalArray<f64>(kArray)};
    here_ = &place;
    for (int k = 0; k < kArray; ++k) place.array[k] = 0.1 * k * x[at];
    values_ = {Value(p), Value(x[at]), Value(far[n[at]])};
    variables_ = {Var<f64>(Value(x[at])), Var<f64>(Value(0.3)), Var<f64>(Value(p))};
    updates_ = random_.chance(70);
    budget_ = 6 + random_.below(14);
    while (budget_ > 0) statement(0, false);
    y(at.x, 0) = Value(variables_[0]) * Value(variables_[1]) + pick();
    if (random_.chance(50)) y(at.x, 1) = Value(variables_[2]);
    values_.clear();
    variables_.clear();
  }

  Value pick() { return random_.of(values_); }
  /// In (-1, 1).
  Value bounded(const Value& v) { return random_.chance(50) ? sin(v) : tanh(v); }
  Val<i32> small() { return Val<i32>(here_->n[here_->at]) % (1 + random_.below(4)); }
  Value operation() {
    const Value a = pick(), b = pick();
    switch (random_.below(12)) {
      case 0: return a + 0.7 * b;
      case 1: return a - b;
      case 2: return bounded(a * b);
      case 3: return bounded(a / (1.5 + b * b));
      case 4: return exp(-(a * a)) * b;
      case 5: return fma(a, bounded(b), 0.2);
      case 6: return sqrt(1.0 + a * a);
      case 7: return log(2.0 + sin(b)) * a;
      case 8: return select(here_->n[here_->at] > random_.below(5), a, 0.5 * b);
      case 9: return atan2(a, 1.2 + b * b);
      case 10: return bounded(here_->far.periodic()(here_->at.x * 2 + small()));
      default: return bounded(here_->x[here_->at.x(random_.below(5) - 2)] * a);
    }
  }
  void statement(int depth, bool in_loop) {
    --budget_;
    const int kind = random_.below(100);
    const Val<i32> element = small();
    if (kind < 30) {
      values_.push_back(bounded(operation()));
    } else if (kind < 45) {
      random_.of(variables_) = bounded(operation());
    } else if (kind < 52) {
      values_.push_back(Value(random_.of(variables_)));
    } else if (kind < 58) {
      here_->array[element] = bounded(pick() + Value(here_->array[(element + 1) % kArray]));
    } else if (kind < 63) {
      values_.push_back(here_->array[element]);
    } else if (kind < 70 && updates_) {
      here_->state[here_->at] = bounded(here_->state[here_->at] * 1.1 + pick());
    } else if (kind < 74) {
      here_->y(here_->at.x, element % 2) = pick();
    } else if (kind < 78 && in_loop) {
      jump();
    } else if (depth < 3) {
      flow(depth, in_loop);
    }
  }
  void jump() {
    const Val<bool> rarely = here_->n[here_->at] == random_.below(kElements) + 0;
    const Val<bool> late = rarely && Value(variables_[0]) > -0.2;
    switch (random_.below(3)) {
      case 0: return break_if(random_.chance(50) ? rarely : late);
      case 1: return continue_if(rarely);
      default: return return_if(rarely && Value(variables_[1]) > 0.5);
    }
  }
  void flow(int depth, bool in_loop) {
    const auto inside = [&](bool loop) { return [this, depth, loop] { block(depth + 1, loop); }; };
    switch (random_.below(4)) {
      case 0: return if_(here_->n[here_->at] > random_.below(kElements), inside(in_loop), inside(in_loop));
      case 1: return if_(pick() > 0.1, inside(in_loop));
      case 2: {
        const bool down = random_.chance(30);
        const Val<i32> most = small() + random_.below(2);
        const auto body = [&](const Val<i32>& i) {
          const size_t mark = values_.size();
          values_.push_back(bounded(cast<f64>(i) * pick()));
          block(depth + 1, true);
          values_.resize(mark, Value(0.0));
        };
        if (down)
          for_(most, -1, -2, body);
        else
          for_(0, most, body);
        return;
      }
      default: {
        Var<i32> left = small() + 1;
        return while_([&] { return left > 0 && Value(variables_[0]) < 0.95; },
                      [&] {
                        left = left - 1;
                        block(depth + 1, true);
                      });
      }
    }
  }
  void block(int depth, bool in_loop) {
    const size_t mark = values_.size();
    const int count = 1 + random_.below(4);
    for (int k = 0; k < count && budget_ > 0; ++k) statement(depth, in_loop);
    random_.of(variables_) = bounded(pick());
    while (values_.size() > mark) values_.pop_back();
  }

  Random random_;
  const Place* here_ = nullptr;
  std::vector<Value> values_;
  std::vector<Var<f64>> variables_;
  int budget_ = 0;
  bool updates_ = false;
};

}  // namespace

GradientCase random_gradient_case(uint64_t seed) { return Generator(seed).run(); }

}  // namespace lockstep::testing
