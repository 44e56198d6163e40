// Cases of the elementary functions: `math.<name>` over ordinary operands, `math.<name>.edges` over arbitrary
// bit patterns and the values at every border. The reference runs the same bodies on the host, so it agrees
// bit for bit.
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "lockstep/verify.hpp"
#include "math/reference.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

template <class T>
Kernel function_kernel(const std::string& name, ir::Op op) {
  if (ir::arity(op) == 1)
    return kernel(name, [op](At<1> at, Grid<T, 1> a, Grid<T, 1>, Out<T, 1> r) {
      r[at] = Val<T>::from(detail::builder().op(op, {Val<T>(a[at]).id()}));
    });
  return kernel(name, [op](At<1> at, Grid<T, 1> a, Grid<T, 1> b, Out<T, 1> r) {
    r[at] = Val<T>::from(detail::builder().op(op, {Val<T>(a[at]).id(), Val<T>(b[at]).id()}));
  });
}

/// Operands inside of the function's domain, of ordinary size.
template <class T>
void ordinary(ir::Op op, cases::Random& random, T& a, T& b) {
  double low = -8, high = 8;
  switch (op) {
    case ir::Op::log:
    case ir::Op::log2:
    case ir::Op::log10:
    case ir::Op::pow:
    case ir::Op::rsqrt: low = 1e-3; break;
    case ir::Op::log1p: low = -0.99; break;
    case ir::Op::asin:
    case ir::Op::acos: low = -1, high = 1; break;
    default: break;
  }
  a = T(random.uniform(low, high));
  b = T(random.uniform(-4, 4));
}

template <class T>
T any_bits(cases::Random& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return std::bit_cast<T>(Bits(random.bits()));
}

template <class T>
std::vector<T> borders() {
  using L = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T v : {T(0), L::denorm_min(), L::min(), T(0.5), T(1), T(1.5), T(2), T(3), T(88.7), T(89.3),
                    T(104), T(709.7), T(710.4), T(746), T(1e9), L::max(), L::infinity(), L::quiet_NaN()}) {
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

template <class T>
struct Operands {
  std::vector<T> a, b;
};
template <class T>
Operands<T> operands(ir::Op op, int64_t count, uint64_t seed, bool edges) {
  cases::Random random(seed + uint64_t(op) * 977);
  Operands<T> x{std::vector<T>(size_t(count)), std::vector<T>(size_t(count))};
  const auto border = borders<T>();
  for (size_t i = 0; i < x.a.size(); ++i) {
    if (!edges) {
      ordinary<T>(op, random, x.a[i], x.b[i]);
    } else if (i < border.size() * border.size()) {
      x.a[i] = border[i % border.size()];
      x.b[i] = border[i / border.size()];
    } else {
      x.a[i] = any_bits<T>(random);
      x.b[i] = any_bits<T>(random);
    }
  }
  return x;
}

/// WGSL's division and square root may be off by some units, and so then are functions that divide.
double webgpu_ulp(ir::Op op) {
  switch (op) {
    case ir::Op::exp:
    case ir::Op::exp2:
    case ir::Op::expm1:
    case ir::Op::log:
    case ir::Op::log2:
    case ir::Op::log10:
    case ir::Op::log1p:
    case ir::Op::sin:
    case ir::Op::cos:
    case ir::Op::erf:
    case ir::Op::fmod: return 2;
    default: return 8;
  }
}

/// WebGPU may take subnormal operands and results for zeros. Where such a choice explains what a device
/// computed, it is replaced by the exact value, so that everything else is compared with it.
void settle_subnormals(ir::Op op, const Operands<f32>& x, std::span<f32> got) {
  constexpr f32 least = std::numeric_limits<f32>::min();
  const auto tiny = [](f32 v) { return std::fabs(v) < least; };  // zero or subnormal
  const auto same = [&](f32 v, f32 w) {
    if (std::isnan(v) || std::isnan(w)) return std::isnan(v) && std::isnan(w);
    if (v == w || (tiny(v) && tiny(w))) return true;
    const auto distance = std::abs(int64_t(std::bit_cast<int32_t>(v)) - int64_t(std::bit_cast<int32_t>(w)));
    return std::isfinite(v) && std::isfinite(w) && std::signbit(v) == std::signbit(w) &&
           distance <= webgpu_ulp(op);
  };
  for (size_t i = 0; i < got.size(); ++i) {
    const f32 a = x.a[i], b = x.b[i], exact = math::evaluate(op, a, b);
    const int choices = (tiny(a) ? 1 : 0) | (tiny(b) && ir::arity(op) == 2 ? 2 : 0);
    bool explained = false;
    for (int zeros = 0; zeros < 4; ++zeros) {
      if (zeros & ~choices) continue;
      const f32 result =
          math::evaluate(op, zeros & 1 ? std::copysign(0.0f, a) : a, zeros & 2 ? std::copysign(0.0f, b) : b);
      explained |= zeros ? same(got[i], result) : std::fabs(result) <= least && tiny(got[i]);
    }
    if (explained) got[i] = exact;
  }
}

template <class T>
Case function_case(ir::Op op, bool edges) {
  Case c;
  c.name = "math." + std::string(ir::name(op)) + (sizeof(T) == 8 ? ".f64" : "") + (edges ? ".edges" : "");
  c.dtype = std::string(name(detail::kType<T>));
  c.needs_f64 = sizeof(T) == 8;
  c.small = {edges ? "8192" : "1000"};
  c.full = {edges ? "1048576" : "100003"};
  if (!edges) c.bench = {"16777216"};
  c.webgpu = Bound::ulp(webgpu_ulp(op));
  const Kernel function = function_kernel<T>(c.name, op);
  c.kernels = [function] { return std::vector{function}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t count = parse_shape(size, 1)[0];
    const auto x = std::make_shared<Operands<T>>(operands<T>(op, count, seed, edges));
    CaseProblem p;
    p.bytes = double(sizeof(T)) * (1 + ir::arity(op)) * double(count);
    p.reference = [=] {
      std::vector<T> r(x->a.size());
      for (size_t i = 0; i < r.size(); ++i) r[i] = math::evaluate(op, x->a[i], x->b[i]);
      return std::vector{Array::of(r)};
    };
    p.bind = [=](const Device& device) {
      const Buffer a = device.upload(x->a), b = device.upload(x->b), r = device.allocate<T>(Shape{count});
      return CaseRun{[=] { device.launch(function, Shape{count}, a, b, r); },
                     [=] {
                       Array result = device.download(r);
                       if constexpr (sizeof(T) == 4) {
                         if (device.info().kind == DeviceKind::webgpu) {
                           std::vector<T> values(result.as<T>().begin(), result.as<T>().end());
                           settle_subnormals(op, *x, values);
                           result = Array::of(values);
                         }
                       }
                       return std::vector{std::move(result)};
                     }};
    };
    return p;
  };
  return c;
}

}  // namespace

void add_math_cases(CaseRegistry& registry) {
  for (const ir::Op op : math::functions())
    for (const bool edges : {false, true}) {
      registry.add(function_case<f32>(op, edges));
      registry.add(function_case<f64>(op, edges));
    }
}

}  // namespace lockstep
