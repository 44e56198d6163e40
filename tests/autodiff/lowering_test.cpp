// Every operation through Lowering, on the interpreter and the CPU, against values in a wider type.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/rows.hpp"
#include "lockstep/device.hpp"

namespace lockstep::testing {
namespace {

using autodiff::Lowering;
using autodiff::Op;
using autodiff::Tape;
using autodiff::Value;

template <class T>
struct Points {
  std::vector<T> a, b;
};
template <class T>
Points<T> points(ir::Op like) {
  Sampler<T> sampler(like, 31);
  Points<T> p{std::vector<T>(500), std::vector<T>(500)};
  for (size_t i = 0; i < p.a.size(); ++i) sampler.next(p.a[i], p.b[i]);
  return p;
}

/// f of two leaves at each point, by a kernel.
template <class T>
std::vector<T> lowered(const Tape& graph, const Value& f, const Points<T>& p, const char* where) {
  const Kernel k = kernel("test.lowering", [&](At<1> at, Grid<T, 1> a, Grid<T, 1> b, Out<T, 1> r) {
    Lowering lower(graph, lockstep::detail::kType<T>,
                   [&](uint32_t leaf) { return leaf == 0 ? a[at] : b[at]; });
    r[at] = lower.as<T>(f);
  });
  const Device device = Device::open(where);
  const Buffer a = device.upload(p.a), b = device.upload(p.b),
               r = device.allocate<T>(Shape{int64_t(p.a.size())});
  device.launch(k, Shape{int64_t(p.a.size())}, a, b, r);
  return device.download<T>(r);
}

/// Conditions as 1 and 0; operands of logic as comparisons with 0.
Value row_value(Tape& g, const Row& row, const Value& x, const Value& y) {
  using autodiff::Condition;
  const auto make = [&](const Value& a, const Value& b) {
    return row.arity == 1 ? g.make(row.op, {a}) : g.make(row.op, {a, b});
  };
  const auto as_number = [&](const Value& c) { return number(Condition(&g, c.id())); };
  if (row.kind == RowKind::VALUE) return make(x, y);
  if (row.kind == RowKind::CONDITION) return as_number(make(x, y));
  return as_number(make((x > 0).node(), (y > 0).node()));
}

template <class T>
void check_row(const Row& row, const char* where) {
  using W = Wider<T>;
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  ir::Op like = ir::Op::none;
  for (int op = 0; op < int(ir::Op::count_); ++op)
    if (row.math && ir::name(ir::Op(op)) == name(row.op)) like = ir::Op(op);
  const Points<T> p = points<T>(like);
  const std::vector<T> got = lowered(g, row_value(g, row, x, y), p, where);
  const double bound = row.math ? promised_ulp(like) : 0.5;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool logic = row.kind == RowKind::LOGIC;
    const W a = logic ? W(p.a[i] > 0) : W(p.a[i]), b = logic ? W(p.b[i] > 0) : W(p.b[i]);
    ASSERT_LE(ulp_error<T>(got[i], wide::row<W>(row.op, a, b)), bound)
        << name(row.op) << " of " << p.a[i] << ", " << p.b[i] << " on " << where << " gave " << got[i];
  }
}

TEST(Lowering, EveryRowHasItsValue) {
  for (const char* where : {"interp", "cpu"})
    for (const Row& row : graph_rows()) {
      check_row<float>(row, where);
      check_row<double>(row, where);
    }
}

TEST(Lowering, OperationsKnownByNameHaveTheirValues) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  const Points<double> p{{-1.25, 0.0, 3.1, 1e-3, -7}, {0.3, 2, -1.5, 1e9, -0.1}};
  struct Named {
    Value value;
    double (*want)(double, double);
    double ulp = 0;
  };
  const Named named[] = {
      {x * y + x, [](double a, double b) { return std::fma(a, b, a); }},
      {x - x * y, [](double a, double b) { return std::fma(-a, b, a); }},
      {x * y - y, [](double a, double b) { return std::fma(a, b, -b); }},
      {autodiff::sum({x, x * y, y}), [](double a, double b) { return std::fma(a, b, a) + b; }},
      {sign(x), [](double a, double) { return a > 0   ? 1.0
                                              : a < 0 ? -1.0
                                                      : 0.0; }},
      {stop_gradient(x) - 2 * y, [](double a, double b) { return std::fma(-2.0, b, a); }},
      {select(x < y, x, 4), [](double a, double b) { return a < b ? a : 4.0; }},
      {powi(x, 5), [](double a, double) { return a * ((a * a) * (a * a)); }},
      {powi(x, -3), [](double a, double) { return 1 / (a * (a * a)); }},
      {powi(y, 1001), [](double, double b) { return std::pow(b, 1001); }, 4},
  };
  for (const char* where : {"interp", "cpu"})
    for (const Named& n : named) {
      const std::vector<double> got = lowered(g, n.value, p, where);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_LE(ulp_error<double>(got[i], n.want(p.a[i], p.b[i])), n.ulp)
            << print(n.value) << " at " << p.a[i] << ", " << p.b[i] << " on " << where << " gave " << got[i];
    }
}

}  // namespace
}  // namespace lockstep::testing
