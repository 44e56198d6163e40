// Proves one elementary function of ops.def on every device of the machine and in the Value graph:
// NEW_OPERATION is 1 / (1 + exp(-x)) under some name. test_new_operation.py builds it from a scratch copy
// with a function added.
#include <fmt/format.h>

#include <cmath>

#include "compile/clike/nvrtc.hpp"
#include "lockstep/autodiff.hpp"
#include "lockstep/verify.hpp"
#include "math/oracle.hpp"
#include "math/reference.hpp"

#ifndef NEW_OPERATION
#define NEW_OPERATION sigmoid
#endif
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

using namespace lockstep;

namespace {

/// Its cases, each against the host; 0 where all pass.
int verify_on(const char* where) {
  Device device;
  try {
    device = Device::open(where);
  } catch (const UnsupportedError& e) {
    fmt::print("{}: absent ({})\n", where, e.what());
    return 0;
  }
  CaseRegistry registry;
  add_math_cases(registry);
  int cases = 0, failures = 0;
  const std::string name = "math." NAME_OF(NEW_OPERATION);
  for (const Case& c : registry.all()) {
    if ((c.name != name && !c.name.starts_with(name + ".")) || (c.needs_f64 && !device.info().limits.f64))
      continue;
    for (const std::string& size : c.small) {
      const VerifyRow row = verify_case(c, size, device, Against::reference, device);
      fmt::print("{}: {} {} {}\n", where, c.name, size, row.pass ? "passes" : "FAILS");
      ++cases;
      failures += !row.pass;
    }
  }
  if (cases == 0) fmt::print("{}: no case of {}\n", where, name);
  return failures + (cases == 0);
}

/// A kernel that says the function's name compiles for CUDA.
int compile_for_cuda() {
  std::string reason;
  if (!clike::Nvrtc::find(&reason)) {
    fmt::print("nvrtc: absent ({})\n", reason);
    return 0;
  }
  const Kernel k = kernel("test.new_operation", [](At<1> at, Grid<f32, 1> x, Grid<f64, 1> y, Out<f64, 1> r) {
    r[at] = cast<f64>(NEW_OPERATION(x[at])) + NEW_OPERATION(y[at]);
  });
  const bool good = clike::emit_cubin(k.function(), Numerics::exact, 90).size() > 64;
  fmt::print("nvrtc: {}\n", good ? "passes" : "FAILS");
  return !good;
}

/// The body against the row's host function in a wider type.
template <class T>
int measure(const char* type) {
  ir::Op op = ir::Op::none;
  for (const ir::Op row : math::functions())
    if (ir::name(row) == NAME_OF(NEW_OPERATION)) op = row;
  testing::Sampler<T> sampler(op, 5);
  double worst = 0;
  for (int n = 0; n < 50000; ++n) {
    T a, b;
    sampler.next(a, b);
    worst = std::max(
        worst, testing::ulp_error<T>(math::evaluate(op, a), testing::oracle<testing::Wider<T>>(op, a, b)));
  }
  fmt::print("body in {}: {:.3f} ulp\n", type, worst);
  return worst > testing::promised_ulp(op);
}

/// Value and derivative in the graph.
int differentiate() {
  autodiff::Tape g;
  const autodiff::Value x = g.variable("x"), r = NEW_OPERATION(x);
  int failures = 0;
  for (double at = -8; at <= 8; at += 0.37) {
    const double want = 1 / (1 + std::exp(-at));
    const std::vector<double> got = autodiff::evaluate<double>({r, gradient(r, {x})[0]}, {at});
    const bool good = std::abs(got[0] - want) <= 1e-15 && std::abs(got[1] - want * (1 - want)) <= 1e-15 &&
                      check_gradient(r, {at}).max_error <= 1e-15;
    if (!good) fmt::print("graph: {} at {} gives {}, derivative {}\n", print(r), at, got[0], got[1]);
    failures += !good;
  }
  fmt::print("graph: {}\n", failures ? "FAILS" : "passes");
  return failures;
}

}  // namespace

int main() {
  int failures = measure<f32>("f32") + measure<f64>("f64") + differentiate() + compile_for_cuda();
  for (const char* where : {"interp", "cpu", "webgpu", "cuda"}) failures += verify_on(where);
  return failures ? 1 : 0;
}
