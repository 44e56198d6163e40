// Proves one elementary function of ops.def in its body, its kernels and the Value graph: NEW_OPERATION is
// 1 / (1 + exp(-x)) under some name. Then the cases that its arguments name, each "device=beginning".
// test_walks_engine.py builds it from a scratch copy with a function and a back end added.
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

/// The cases of a beginning, each against its reference, or where it has none against the interpreter; 0 where all pass.
int verify_on(const std::string& where, const std::string& beginning) {
  const Device device = Device::open(where), interp = Device::open("interp");
  CaseRegistry registry;
  add_math_cases(registry);
  add_engine_cases(registry);
  int cases = 0, failures = 0;
  for (const Case& c : registry.all()) {
    if (!c.name.starts_with(beginning) || (c.needs_f64 && !device.info().limits.f64)) continue;
    for (const std::string& size : c.small) {
      VerifyRow row = verify_case(c, size, device, Against::reference, device);
      if (!row.skipped.empty()) row = verify_case(c, size, device, Against::interp, interp);
      fmt::print("{}: {} {} {}\n", where, c.name, size, row.pass ? "passes" : "FAILS");
      ++cases;
      failures += !row.pass;
    }
  }
  if (cases == 0) fmt::print("{}: no case of {}\n", where, beginning);
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

int main(int count, char** arguments) {
  int failures = measure<f32>("f32") + measure<f64>("f64") + differentiate() + compile_for_cuda();
  for (int k = 1; k < count; ++k) {
    const std::string both = arguments[k];
    const size_t cut = both.find('=');
    failures += verify_on(both.substr(0, cut), both.substr(cut + 1));
  }
  return failures ? 1 : 0;
}
