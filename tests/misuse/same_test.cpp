// The same body gives the same bits on floats and in a kernel: kernel values mean what C++ says of floats.
#include "languages.hpp"

namespace lockstep::misuse {
namespace {

// ── variables: copied, moved, exchanged ──
SAME(SwapVariables) {
  Variable x = b[0], y = b[1];
  std::swap(x, y);
  b[0] = x;
  b[1] = y;
}
SAME(SwapByAdl) {
  Variable x = b[0], y = b[1];
  using std::swap;
  swap(x, y);
  b[0] = x - 2 * y;
}
SAME(SwapInABranch) {
  Variable x = b[0], y = b[1];
  l.if_(x < y, [&] { std::swap(x, y); });
  b[0] = x;
  b[1] = y;
}
SAME(SwapInALoop) {
  Variable x = b[0], y = b[1];
  l.for_(0, 3, 1, [&](Whole) {
    std::swap(x, y);
    x += 1.0f;
  });
  b[0] = x;
  b[1] = y;
}
SAME(SwapWithItself) {
  Variable x = b[0];
  Variable& same = x;
  std::swap(x, same);
  b[1] = x;
}
SAME(Exchange) {
  Variable x = b[0];
  Variable old = std::exchange(x, 5.0f);
  b[0] = x;
  b[1] = old;
}
SAME(ExchangeWithAVariable) {
  Variable x = b[0], y = b[1];
  const Variable old = std::exchange(x, y);
  y = 9.0f;
  b[0] = x;
  b[1] = old;
  b[2] = y;
}
SAME(FibonacciByExchange) {
  Variable x = 0.0f, y = 1.0f;
  l.for_(0, 7, 1, [&](Whole) { x = std::exchange(y, x + y); });
  b[0] = x;
  b[1] = y;
}
SAME(MoveConstruction) {
  Variable x = b[0];
  Variable y = std::move(x);
  y += 1.0f;
  b[0] = x;
  b[1] = y;
}
SAME(MoveAssignment) {
  Variable x = b[0], y = b[1];
  y = std::move(x);
  x = 7.0f;
  b[0] = x;
  b[1] = y;
}
SAME(CopyIsItsOwn) {
  Variable x = b[0];
  Variable y = x;
  y *= 3.0f;
  b[0] = x;
  b[1] = y;
}
SAME(AutoCopyIsItsOwn) {
  Variable x = b[0];
  auto y = x;
  x = 1.0f;
  b[0] = x;
  b[1] = y;
}
SAME(ReferenceIsTheSame) {
  Variable x = b[0];
  Variable& y = x;
  y += 1.0f;
  auto& z = y;
  z *= 2.0f;
  b[0] = x;
}
SAME(ConstReferenceFollows) {
  Variable x = b[0];
  const Variable& y = x;
  x += 4.0f;
  b[0] = y;
}
SAME(ValueStays) {
  Variable x = b[0];
  const Value before = x;
  x += 4.0f;
  b[0] = before;
  b[1] = x;
}
SAME(ChainedAssignment) {
  Variable x = b[0], y = b[1], z = b[2];
  x = y = z;
  b[0] = x;
  b[1] = y;
}
SAME(AssignmentGivesTheVariable) {
  Variable x = b[0];
  (x = 3.0f) += 2.0f;
  (x += 1.0f) *= 2.0f;
  b[0] = x;
}
SAME(SelfAssignment) {
  Variable x = b[0];
  const Variable& same = x;
  x = same;
  b[1] = x;
}
SAME(ReturnedVariable) {
  const auto twice = [](Value v) {
    Variable r = v;
    r += v;
    return r;
  };
  Variable x = twice(b[0]);
  x += 1.0f;
  b[0] = x;
}
SAME(PassedByValue) {
  const auto change = [](Variable v) {
    v += 100.0f;
    return Value(v);
  };
  Variable x = b[0];
  b[1] = change(x);
  b[0] = x;
}
SAME(PassedByReference) {
  const auto change = [](Variable& v) { v += 100.0f; };
  Variable x = b[0];
  change(x);
  b[0] = x;
}
SAME(VectorOfVariables) {
  std::vector<Variable> all;
  for (int k = 0; k < 5; ++k) all.push_back(b[k]);  // grows: its elements move
  all[0] += 1.0f;
  all.erase(all.begin() + 1);
  for (int k = 0; k < 4; ++k) b[k] = all[size_t(k)];
}

// ── std::array, std::pair, std::tuple ──
SAME(ArrayOfVariables) {
  std::array<Variable, 3> v{b[0], b[1], b[2]};
  std::array<Variable, 3> w = v;
  w[0] += 10.0f;
  std::swap(v[1], v[2]);
  for (int k = 0; k < 3; ++k) {
    b[k] = v[size_t(k)];
    b[3 + k] = w[size_t(k)];
  }
}
SAME(SwapOfArrays) {
  std::array<Variable, 2> v{b[0], b[1]}, w{b[2], b[3]};
  std::swap(v, w);
  b[0] = v[0];
  b[1] = v[1];
  b[2] = w[0];
  b[3] = w[1];
}
SAME(ReverseOfAnArray) {
  std::array<Variable, 4> v{b[0], b[1], b[2], b[3]};
  std::reverse(v.begin(), v.end());
  for (int k = 0; k < 4; ++k) b[k] = v[size_t(k)];
}
SAME(ArrayOfValues) {
  std::array<Value, 3> v{b[0], b[1], b[2]};
  std::reverse(v.begin(), v.end());
  std::swap(v[0], v[1]);
  for (int k = 0; k < 3; ++k) b[k] = v[size_t(k)];
}
SAME(Pair) {
  std::pair<Variable, Value> p(b[0], b[1]);
  auto q = p;
  p.first += 1.0f;
  b[0] = p.first;
  b[1] = q.first;
  b[2] = q.second;
}
SAME(SwapOfPairs) {
  std::pair<Variable, Variable> p(b[0], b[1]), q(b[2], b[3]);
  std::swap(p, q);
  b[0] = p.first;
  b[1] = p.second;
  b[2] = q.first;
  b[3] = q.second;
}
SAME(TieOfAPair) {
  Variable x = b[0], y = b[1];
  std::tie(x, y) = std::pair<Value, Value>(y, x);
  b[0] = x;
  b[1] = y;
}
SAME(BindingsOfAPair) {
  std::pair<Variable, Variable> p(b[0], b[1]);
  auto [x, y] = p;
  x += 1.0f;
  b[0] = p.first;
  b[1] = x + y;
}
SAME(ReferenceBindingsOfAPair) {
  std::pair<Variable, Variable> p(b[0], b[1]);
  auto& [x, y] = p;
  x += y;
  b[0] = p.first;
}
SAME(BindingsOfAnArray) {
  std::array<Variable, 2> v{b[0], b[1]};
  auto& [x, y] = v;
  std::swap(x, y);
  b[0] = v[0];
  b[1] = v[1];
}

// ── register arrays ──
SAME(SwapInARegisterArray) {
  auto v = l.template array<3>([&](int k) { return b[k]; });
  std::swap(v[0], v[1]);
  for (int k = 0; k < 3; ++k) b[k] = v[size_t(k)];
}
SAME(ReverseOfARegisterArray) {
  auto v = l.template array<3>([&](int k) { return b[k]; });
  std::reverse(v.begin(), v.end());
  for (int k = 0; k < 3; ++k) b[k] = v[size_t(k)];
}
SAME(RotateOfARegisterArray) {
  auto v = l.template array<5>([&](int k) { return b[k]; });
  std::rotate(v.begin(), v.begin() + 2, v.end());
  for (int k = 0; k < 5; ++k) b[k] = v[size_t(k)];
}
SAME(CopyOfARegisterArray) {
  auto v = l.template array<3>([&](int k) { return b[k]; });
  auto w = v;
  w[0] = 50.0f;
  std::copy(v.begin() + 1, v.end(), w.begin() + 1);
  b[0] = v[0];
  b[1] = w[0];
  b[2] = w[2];
}
SAME(FillAndAccumulate) {
  auto v = l.template array<4>([&](int k) { return b[k]; });
  std::fill(v.begin(), v.begin() + 2, 2.0f);
  Variable sum = 0.0f;
  for (const auto& each : v) sum += each;
  b[0] = sum;
}
SAME(RangeForByValue) {
  auto v = l.template array<3>([&](int k) { return b[k]; });
  for (auto each : v) each += 100.0f;  // copies
  b[0] = v[0];
  b[1] = v[2];
}
SAME(RangeForByReference) {
  auto v = l.template array<3>([&](int k) { return b[k]; });
  for (auto& each : v) each += 100.0f;
  b[0] = v[0];
  b[1] = v[2];
}
SAME(AutoOfARegister) {
  auto v = l.template array<2>([&](int k) { return b[k]; });
  auto t = v[0];
  v[0] = v[1];
  v[1] = t;
  b[0] = v[0];
  b[1] = v[1];
}
SAME(BindingsOfARegisterArray) {
  auto v = l.template array<2>([&](int k) { return b[k]; });
  auto& [x, y] = v;
  x += 3.0f * y;
  b[0] = v[0];
}
SAME(CopyBindingsOfARegisterArray) {
  auto v = l.template array<2>([&](int k) { return b[k]; });
  auto [x, y] = v;
  x += 3.0f * y;
  b[0] = v[0];
  b[1] = x;
}
SAME(SortAscending) {
  auto v = l.template array<7>([&](int k) { return b[k]; });
  l.sort(v, [](const auto& p, const auto& q) { return p < q; });
  for (int k = 0; k < 7; ++k) b[k] = v[size_t(k)];
}
SAME(SortByAComparator) {
  auto v = l.template array<6>([&](int k) { return b[k]; });
  l.sort(v, [](const auto& p, const auto& q) { return (p - 3.0f) * (p - 3.0f) > (q - 3.0f) * (q - 3.0f); });
  for (int k = 0; k < 6; ++k) b[k] = v[size_t(k)];
}

// ── elements of buffers ──
SAME(SwapOfElements) {
  auto t = b[0];
  b[0] = b[1];
  b[1] = t;
}
SAME(ConstAutoOfAnElement) {
  const auto t = b[0];
  b[0] = 99.0f;
  b[1] = t;
}
SAME(AutoOfAnElementTwice) {
  auto t = b[0];
  b[0] = 1.0f;
  auto u = b[0];
  b[0] = 2.0f;
  b[1] = t;
  b[2] = u;
  b[3] = t + u;
}
SAME(CopyOfANamedElement) {
  auto t = b[0];
  auto u = t;
  b[0] = 5.0f;
  auto w = t;
  b[1] = t;
  b[2] = u;
  b[3] = w;
}
SAME(ElementReadInABranch) {
  auto t = b[0];
  b[0] = 10.0f;
  l.if_(b[0] > 1.0f, [&] { b[1] = t; }, [&] { b[2] = t; });
  b[3] = t;
}
SAME(ElementReadInALoop) {
  auto t = b[0];
  l.for_(0, 3, 1, [&](Whole i) {
    b[0] = b[0] + t;
    b[i + 1] = t;
  });
}
SAME(ElementMadeInALoop) {
  Variable sum = 0.0f;
  l.for_(0, 4, 1, [&](Whole i) {
    auto t = b[i];
    b[i] = 1.0f;
    sum += t;
  });
  b[7] = sum;
}
SAME(ElementBeforeALoop) {
  auto t = b[0];
  l.for_(0, 4, 1, [&](Whole i) { b[i] = l.real(i); });
  b[7] = t;
}
SAME(ElementCapturedByValue) {
  auto t = b[0];
  const auto read = [t] { return Value(t); };
  b[0] = 3.0f;
  b[1] = read();
}
SAME(ElementCapturedByReference) {
  auto t = b[0];
  const auto read = [&] { return Value(t); };
  b[0] = 3.0f;
  b[1] = read();
}
SAME(ElementsInAFunction) {
  const auto sum = [](const auto& x, const auto& y) { return x * x + y; };
  b[0] = sum(b[0], b[1]);
  b[1] = sum(b[0], b[0]);
}
SAME(ElementsByValueInAFunction) {
  const auto sum = [](auto x, auto y) { return x * y + x; };
  b[0] = sum(b[0], b[1]);
  b[2] = sum(b[0], b[3]);
}
SAME(CompoundOfElements) {
  b[0] += b[1];
  b[1] -= b[0] * 2.0f;
  b[2] *= b[2];
  b[3] /= b[1];
}
SAME(ReverseInThreeLines) {
  for (int k = 0; k < 4; ++k) {
    auto t = b[k];
    b[k] = b[7 - k];
    b[7 - k] = t;
  }
}
SAME(ReverseInALoop) {
  l.for_(0, 4, 1, [&](Whole k) {
    auto t = b[k];
    b[k] = b[7 - k];
    b[7 - k] = t;
  });
}
SAME(MovedElement) {
  b[1] = std::move(b[0]);
  Variable x = std::move(b[2]);
  b[2] = 0.0f;
  b[3] = x;
}
SAME(ShiftOfElements) {
  for (int k = 0; k < 7; ++k) b[k] = b[k + 1];
}
SAME(ElementsInMath) {
  b[0] = l.sqrt(b[0]);
  b[1] = l.min(b[1], b[2]);
  b[2] = l.select(b[3] < b[4], b[3], b[4]);
}
SAME(PairOfElements) {
  auto p = std::pair(b[0], b[1]);
  b[0] = 0.0f;
  b[1] = 0.0f;
  b[2] = p.first;
  b[3] = p.second;
}
SAME(ArrayOfElements) {
  const std::array<Value, 2> kept{b[0], b[1]};
  b[0] = 0.0f;
  b[1] = kept[0];
  b[2] = kept[1];
}
SAME(IndexFromAnElement) {
  auto t = b[5];
  b[5] = 77.0f;
  b[l.whole(t - t)] = t;
}

// ── elements of shared and local arrays ──
SAME(SwapInALocalArray) {
  auto v = l.local(2);
  v[0] = b[0];
  v[1] = b[1];
  auto t = v[0];
  v[0] = v[1];
  v[1] = t;
  b[0] = v[0];
  b[1] = v[1];
}
SAME(ReverseOfASharedArray) {
  auto v = l.shared(8);
  for (int k = 0; k < 8; ++k) v[k] = b[k];
  for (int k = 0; k < 4; ++k) {
    auto t = v[k];
    v[k] = v[7 - k];
    v[7 - k] = t;
  }
  for (int k = 0; k < 8; ++k) b[k] = v[k];
}
SAME(SharedReadBeforeAStore) {
  auto v = l.shared(2);
  v[0] = b[0];
  const auto t = v[0];
  v[0] = 99.0f;
  b[1] = t;
  b[2] = v[0];
}
SAME(LocalReadBeforeAStore) {
  auto v = l.local(2);
  v[0] = b[0];
  const auto t = v[0];
  v[0] = 99.0f;
  b[1] = t;
  b[2] = v[0];
}
SAME(InsertionByIndex) {
  auto v = l.local(8);
  l.for_(0, 8, 1, [&](Whole k) { v[k] = b[k]; });
  l.for_(7, 0, -1, [&](Whole k) {
    auto t = v[k];
    v[k] = v[k - 1];
    v[k - 1] = t;
  });
  l.for_(0, 8, 1, [&](Whole k) { b[k] = v[k]; });
}

// ── captures, loops, numbers ──
SAME(CapturedByReference) {
  Variable x = b[0];
  const auto add = [&](float v) { x += v; };
  add(1.0f);
  add(2.0f);
  b[0] = x;
}
SAME(CapturedByValue) {
  Variable x = b[0];
  const auto read = [x] { return Value(x); };
  x = 40.0f;
  b[0] = x;
  b[1] = read();
}
SAME(CapturedAndChanged) {
  Variable x = b[0];
  auto add = [x](float v) mutable {
    x += v;
    return Value(x);
  };
  b[1] = add(1.0f);
  b[2] = add(2.0f);
  b[0] = x;
}
SAME(BranchWithACopy) {
  Variable x = b[0];
  l.if_(x < 100.0f, [x]() mutable { x += 1.0f; });
  b[0] = x;
}
SAME(LocalConstants) {
  constexpr int n = 3;
  constexpr float half = 0.5f;
  const auto f = [](Value v) { return v * half + half * n - v / n; };
  b[0] = f(b[0]);
}
SAME(LoopDown) {
  Variable sum = 0.0f;
  l.for_(5, -1, -2, [&](Whole i) { sum = sum * 2.0f + l.real(i); });
  b[0] = sum;
}
SAME(LoopByThree) {
  Variable sum = 0.0f;
  l.for_(-4, 9, 3, [&](Whole i) { sum = sum * 2.0f + l.real(i); });
  b[0] = sum;
}
SAME(LoopWithoutAPass) {
  Variable sum = 1.0f;
  l.for_(3, 3, 2, [&](Whole) { sum += 1.0f; });
  l.for_(3, 5, -1, [&](Whole) { sum += 1.0f; });
  b[0] = sum;
}
SAME(While) {
  Variable x = b[0];
  l.while_([&] { return x < 1000.0f; }, [&] { x = x * 3.0f + 1.0f; });
  b[0] = x;
}
SAME(Increments) {
  Variable x = b[0], y = b[1];
  ++x;
  ++ ++y;
  --x;
  ++x *= 2.0f;
  b[0] = x;
  b[1] = y;
}
SAME(Newton) {
  Variable r = 1.0f;
  l.for_(0, 6, 1, [&](Whole) { r = 0.5f * (r + b[2] / r); });
  b[0] = r;
}
SAME(ProductsAndSums) {
  b[0] = b[0] * b[1] + b[2] * b[3] - b[4];
  b[1] = 1.1f * b[1] + 0.3f;
}
SAME(Precedence) { b[0] = -b[0] + b[1] * -2.0f - (b[2] - b[3]) / 7.0f; }

}  // namespace
}  // namespace lockstep::misuse
