// More bodies for two languages: algorithms, captures, control flow, conditions.
#include "languages.hpp"

namespace lockstep::misuse {
namespace {

constexpr float kScale = 0.5f;
int host_calls = 0;

// ── algorithms ──
SAME(AccumulateOfARegisterArray) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  b[0] =
      std::accumulate(v.begin(), v.end(), Value(0.0f), [](const Value& x, const Value& y) { return x + y; });
}
SAME(AccumulateByAFunction) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  b[0] = std::accumulate(v.begin(), v.end(), Value(1.0f),
                         [](const Value& x, const Value& y) { return x * 0.5f + y; });
}
SAME(InnerProduct) {
  auto v = l.template array<4>([&](int k) { return b[k]; });
  auto w = l.template array<4>([&](int k) { return b[4 + k]; });
  b[0] = std::inner_product(
      v.begin(), v.end(), w.begin(), Value(0.0f), [](const Value& x, const Value& y) { return x + y; },
      [](const Value& x, const Value& y) { return x * y; });
}
SAME(TransformInPlace) {
  auto v = l.template array<4>([&](int k) { return b[k]; });
  std::transform(v.begin(), v.end(), v.begin(), [](const Value& x) { return x * x; });
  for (int k = 0; k < 4; ++k) b[k] = v[size_t(k)];
}
SAME(TransformOfTwo) {
  auto v = l.template array<4>([&](int k) { return b[k]; });
  std::transform(v.begin(), v.end() - 1, v.begin() + 1, v.begin(),
                 [](const Value& x, const Value& y) { return y - x; });
  for (int k = 0; k < 4; ++k) b[k] = v[size_t(k)];
}
SAME(PartialSum) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  for (size_t k = 1; k < 5; ++k) v[k] += v[k - 1];
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}
SAME(ForEachByReference) {
  auto v = l.template array<4>([&](int k) { return b[k]; });
  std::for_each(v.begin(), v.end(), [](Variable& x) { x *= 2.0f; });
  b[0] = v[0];
  b[1] = v[3];
}
SAME(ForEachByValue) {
  auto v = l.template array<4>([&](int k) { return b[k]; });
  std::for_each(v.begin(), v.end(), [](Variable x) { x *= 2.0f; });
  b[0] = v[0];
  b[1] = v[3];
}
SAME(GenerateByAState) {
  auto v = l.template array<5>([&](int) { return 0.0f; });
  Variable state = b[0];
  std::generate(v.begin(), v.end(), [&] {
    state = state * 1.5f + 1.0f;
    return Value(state);
  });
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}
SAME(SwapRanges) {
  auto v = l.template array<6>([&](int k) { return b[k]; });
  std::swap_ranges(v.begin(), v.begin() + 3, v.begin() + 3);
  for (int k = 0; k < 6; ++k) b[k] = v[size_t(k)];
}
SAME(CopyBackward) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  std::copy_backward(v.begin(), v.end() - 1, v.end());
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}
SAME(MoveOfARange) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  std::move(v.begin() + 1, v.end(), v.begin());
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}
SAME(SortDescending) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  l.sort(v, [](const auto& p, const auto& q) { return p > q; });
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}
SAME(SortByACapturedValue) {
  auto v = l.template array<6>([&](int k) { return b[k]; });
  Variable centre = b[6];
  l.sort(v, [=](const auto& p, const auto& q) {
    const Value c = centre;
    return (p - c) * (p - c) < (q - c) * (q - c);
  });
  for (int k = 0; k < 6; ++k) b[k] = v[size_t(k)];
}
SAME(SortTwice) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  l.sort(v, [](const auto& p, const auto& q) { return p < q; });
  v[2] = 0.0f;
  l.sort(v, [](const auto& p, const auto& q) { return p < q; });
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}

// ── containers ──
SAME(VectorOfValues) {
  std::vector<Value> v;
  for (int k = 0; k < 4; ++k) v.push_back(b[k]);
  v.insert(v.begin() + 1, v[3]);
  v.erase(v.begin());
  std::reverse(v.begin(), v.end());
  for (int k = 0; k < 4; ++k) b[k] = v[size_t(k)];
}
SAME(MapOfVariables) {
  std::map<int, Variable> held;
  for (int k = 0; k < 3; ++k) held.emplace(k, b[k]);
  held.at(1) += 5.0f;
  for (auto& [key, value] : held) b[key] = value * float(key);
}
SAME(OptionalValue) {
  std::optional<Value> held;
  held = b[0];
  b[0] = 4.0f;
  b[1] = *held;
}
SAME(TupleOfAll) {
  auto t = std::make_tuple(Variable(b[0]), Value(b[1]), 2.0f);
  std::get<0>(t) += std::get<1>(t) * std::get<2>(t);
  b[0] = std::get<0>(t);
}
SAME(PairAssigned) {
  std::pair<Variable, Variable> p(b[0], b[1]), q(b[2], b[3]);
  p = q;
  q.first = 7.0f;
  b[0] = p.first;
  b[1] = p.second;
  b[2] = q.first;
}
SAME(ArrayAssigned) {
  std::array<Variable, 2> v{b[0], b[1]}, w{b[2], b[3]};
  v = w;
  w[0] = 7.0f;
  b[0] = v[0];
  b[1] = w[0];
}
SAME(ArrayInABranch) {
  std::array<Variable, 2> v{b[0], b[1]}, w{b[2], b[3]};
  l.if_(v[0] < w[0], [&] { v = w; }, [&] { std::swap(v, w); });
  b[0] = v[0];
  b[1] = v[1];
  b[2] = w[0];
}
SAME(RegisterArrayInALoop) {
  auto v = l.template array<3>([&](int k) { return b[k]; });
  l.for_(0, 4, 1, [&](Whole) { std::rotate(v.begin(), v.begin() + 1, v.end()); });
  for (int k = 0; k < 3; ++k) b[k] = v[size_t(k)];
}
SAME(RegisterArraysExchanged) {
  auto v = l.template array<2>([&](int k) { return b[k]; });
  auto w = l.template array<2>([&](int k) { return b[2 + k]; });
  l.for_(0, 3, 1, [&](Whole) {
    std::swap(v, w);
    v[0] += 1.0f;
  });
  b[0] = v[0];
  b[1] = w[0];
}

// ── captures, functions ──
SAME(InitCapture) {
  Variable x = b[0];
  auto next = [y = x]() mutable {
    y += 1.0f;
    return Value(y);
  };
  x = 50.0f;
  b[1] = next();
  b[2] = next();
  b[0] = x;
}
SAME(CapturedByBoth) {
  Variable x = b[0], y = b[1];
  const auto work = [x, &y] { y += x; };
  x = 100.0f;
  work();
  work();
  b[1] = y;
}
SAME(CopyOfAMutableLambda) {
  Variable x = b[0];
  auto first = [x]() mutable {
    x += 1.0f;
    return Value(x);
  };
  b[1] = first();
  auto second = first;
  b[2] = second();
  b[3] = first();
}
SAME(StoredFunction) {
  Variable x = b[0];
  const std::function<Value(Value)> add = [&](Value v) { return v + x; };
  x = 3.0f;
  b[1] = add(b[1]);
}
SAME(HostVariableCaptured) {
  int n = 1;
  const auto by_value = [n](Value v) { return v * float(n); };
  const auto by_reference = [&n](Value v) { return v * float(n); };
  n = 4;
  b[0] = by_value(b[0]);
  b[1] = by_reference(b[1]);
}
SAME(HostVariableInARolledOutLoop) {
  float weight = 1.0f;
  for (int k = 0; k < 4; ++k) {
    b[k] = b[k] * weight;
    weight *= 0.5f;
  }
}
SAME(DefaultArgument) {
  const auto scaled = [](Value v, float by = 2.0f) { return v * by; };
  b[0] = scaled(b[0]);
  b[1] = scaled(b[1], 3.0f);
}
SAME(StaticConstant) {
  static const float twice = 2.0f;
  static constexpr std::array<float, 3> table{1.0f, 4.0f, 9.0f};
  for (size_t k = 0; k < table.size(); ++k) b[int(k)] = b[int(k)] * table[k] + twice * kScale;
}
SAME(HostRecursion) {
  const std::function<Value(int, Value)> power = [&](int n, Value v) -> Value {
    return n == 0 ? Value(1.0f) : v * power(n - 1, v);
  };
  b[0] = power(3, b[0]);
}
SAME(HostEarlyReturn) {
  const auto nth = [&](int n) -> Value {
    if (n > 2) return b[0];
    return b[n];
  };
  b[6] = nth(1);
  b[7] = nth(5);
}
SAME(HostSwitch) {
  for (int k = 0; k < 3; ++k) switch (k) {
      case 0: b[k] = 1.0f; [[fallthrough]];
      case 1: b[k] += 2.0f; break;
      default: b[k] = 9.0f;
    }
}
SAME(HostCallsOnce) {
  host_calls = 0;
  const auto counted = [](Value v) {
    ++host_calls;
    return v;
  };
  const Value v = counted(b[0]);
  b[0] = v + v;
  b[1] = float(host_calls);
}
SAME(ReferenceReturned) {
  std::array<Variable, 2> v{b[0], b[1]};
  const auto at = [&](int k) -> Variable& { return v[size_t(k)]; };
  at(0) += 2.0f;
  at(1) = at(0);
  b[0] = v[0];
  b[1] = v[1];
}
SAME(OutParameter) {
  const auto halves = [](Value v, Variable& low, Variable& high) {
    low = v * 0.5f;
    high = v - low;
  };
  Variable x = 0.0f, y = 0.0f;
  halves(b[0], x, y);
  b[1] = x;
  b[2] = y;
}
SAME(SameArgumentTwice) {
  const auto add = [](Variable& to, const Variable& what) {
    to += what;
    to += what;
  };
  Variable x = b[0];
  add(x, x);
  b[0] = x;
}

// ── control flow ──
SAME(BreakOutOfALoop) {
  Variable sum = 0.0f;
  l.for_(0, 8, 1, [&](Whole i) {
    l.break_if(i == 5);
    sum += b[i];
  });
  b[0] = sum;
}
SAME(ContinueInALoop) {
  Variable sum = 0.0f;
  l.for_(0, 8, 1, [&](Whole i) {
    l.continue_if((i & 1) == 0);
    sum += b[i];
  });
  b[0] = sum;
}
SAME(BreakOutOfTheInnerLoop) {
  Variable count = 0.0f;
  l.for_(0, 4, 1, [&](Whole i) {
    l.for_(0, 9, 1, [&](Whole j) {
      l.break_if(j > i);
      count += 1.0f;
    });
  });
  b[0] = count;
}
SAME(ContinueInAWhile) {
  Variable x = 0.0f, sum = 0.0f;
  l.while_([&] { return x < 6.0f; },
           [&] {
             x += 1.0f;
             l.continue_if(x == 3.0f);
             sum += x;
           });
  b[0] = sum;
}
SAME(BreakInAWhile) {
  Variable x = b[0];
  l.while_([&] { return x < 1000.0f; },
           [&] {
             x *= 2.0f;
             l.break_if(x > 50.0f);
           });
  b[0] = x;
}
SAME(ConditionThatCounts) {
  Variable x = 0.0f, asked = 0.0f;
  l.while_(
      [&] {
        asked += 1.0f;
        return x < 3.0f;
      },
      [&] { x += 1.0f; });
  b[0] = asked;
}
SAME(CompoundInACondition) {
  Variable x = 0.0f, sum = 0.0f;
  l.while_([&] { return (x += 1.0f) < 5.0f; }, [&] { sum += x; });
  b[0] = sum;
  b[1] = x;
}
SAME(IncrementInACondition) {
  Variable x = 0.0f, sum = 0.0f;
  l.while_([&] { return ++x < 5.0f; }, [&] { sum += x; });
  b[0] = sum;
}
SAME(AssignmentInABranchCondition) {
  Variable x = b[0], y = 0.0f;
  l.if_((y = x * 2.0f) > 1.0f, [&] { b[1] = y; });
  b[2] = y;
}
SAME(BranchChangesItsCondition) {
  Variable x = b[0];
  l.if_(x < 100.0f, [&] { x = 200.0f; }, [&] { x = 300.0f; });
  l.if_(x > 100.0f, [&] { x += 1.0f; });
  b[0] = x;
}
SAME(ConditionOfBefore) {
  Variable x = b[0];
  const auto small = x < 100.0f;
  x = 500.0f;
  l.if_(small, [&] { b[1] = x; }, [&] { b[2] = x; });
}
SAME(ChainOfBranches) {
  Variable r = 0.0f;
  l.if_(b[0] > 100.0f, [&] { r = 1.0f; }, [&] { l.if_(b[0] > 0.0f, [&] { r = 2.0f; }, [&] { r = 3.0f; }); });
  b[0] = r;
}
SAME(AndOr) {
  const Value x = b[0], y = b[1];
  b[2] = l.select(x > 1.0f && y > 1.0f, 1.0f, 2.0f);
  b[3] = l.select(x > 100.0f || y > 1.0f, 1.0f, 2.0f);
  b[4] = l.select(!(x > 1.0f) || (y < 1.0f && x < y), 1.0f, 2.0f);
  b[5] = l.select((x > 1.0f) == (y > 1.0f), 1.0f, 2.0f);
  b[6] = l.select((x > 1.0f) != (y > 100.0f), 1.0f, 2.0f);
}
SAME(LoopVariableIsACopy) {
  Variable sum = 0.0f;
  l.for_(0, 4, 1, [&](Whole i) {
    i = i * 2;
    sum += l.real(i);
  });
  b[0] = sum;
}
SAME(LoopOverNegatives) {
  Variable sum = 0.0f;
  l.for_(-3, 3, 1, [&](Whole i) { sum = sum * 3.0f + l.real(i); });
  l.for_(3, -4, -3, [&](Whole i) { sum = sum * 3.0f + l.real(i); });
  l.for_(-1, 2, -1, [&](Whole) { sum = -1000.0f; });
  b[0] = sum;
}
SAME(LoopInALoop) {
  Variable sum = 0.0f;
  l.for_(0, 4, 1, [&](Whole i) {
    Variable inner = 0.0f;  // again in every pass
    l.for_(0, 3, 1, [&](Whole j) { inner += l.real(i * j); });
    sum = sum * 2.0f + inner;
  });
  b[0] = sum;
}
SAME(VariableOfAPassIsNew) {
  Variable sum = 0.0f;
  l.for_(0, 5, 1, [&](Whole) {
    Variable x = 1.0f;
    l.if_(sum > 2.0f, [&] { x = 10.0f; });
    sum += x;
  });
  b[0] = sum;
}
SAME(ArrayOfAPass) {
  l.for_(0, 3, 1, [&](Whole i) {
    auto v = l.template array<2>([&](int k) { return b[k]; });
    std::swap(v[0], v[1]);
    b[0] = v[0] + l.real(i);
    b[1] = v[1];
  });
}
SAME(BubbleSort) {
  l.for_(0, 8, 1, [&](Whole) {
    l.for_(0, 7, 1, [&](Whole j) {
      auto p = b[j];
      auto q = b[j + 1];
      b[j] = l.min(p, q);
      b[j + 1] = l.max(p, q);
    });
  });
}
SAME(Horner) {
  Variable r = 0.0f;
  for (int k = 7; k >= 0; --k) r = r * 0.25f + b[k];
  b[0] = r;
}
SAME(EuclidOnFloats) {
  Variable x = 21.0f, y = 15.0f;
  l.while_([&] { return y > 0.5f; },
           [&] {
             l.while_([&] { return x >= y; }, [&] { x -= y; });
             std::swap(x, y);
           });
  b[0] = x;
}
SAME(LocalArrayByReference) {
  auto v = l.local(3);
  const auto set = [](auto& array, int k, Value x) { array[k] = x; };
  set(v, 1, b[0]);
  set(v, 2, v[1]);
  b[1] = v[2];
}
SAME(ElementInACondition) {
  auto t = b[0];
  b[0] = 100.0f;
  l.if_(t < 50.0f, [&] { b[1] = 1.0f; }, [&] { b[1] = 2.0f; });
}
SAME(ElementOfAnElement) {
  b[0] = 2.0f;
  b[l.whole(b[0])] = 9.0f;
  b[1] = b[l.whole(b[0])];
}
SAME(NegationAndZero) {
  b[0] = -(b[0] - b[0]);
  b[1] = 1.0f / l.max(b[1] * 0.0f, -0.0f + 0.5f);
  b[2] = -b[2] * -1.0f;
}

}  // namespace
}  // namespace lockstep::misuse
