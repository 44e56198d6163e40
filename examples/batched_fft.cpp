// Many complex Fourier transforms of 1024 numbers: Stockham's form, radix 4, five passes, one group a transform.
//   batched_fft [verify] [--device NAMES]     batched_fft bench --device cpu
#include <cmath>
#include <complex>
#include <numbers>

#include "lockstep/emit.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/verify.hpp"

using namespace lockstep;

static constexpr int kLength = 1024, kLanes = kLength / 4;
using Number = Complex<f32>;

static Kernel fft_kernel() {
  const auto body = [](Group<1> g, Grid<f32, 3> in, Grid<f32, 2> roots, Out<f32, 3> out) {
    const SharedElements<Number> shared(kLength);
    const Val<i32> j = g.lane();
    std::vector<Number> v;
    for (int r = 0; r < 4; ++r) {
      const auto z = in.wide<2>(g.id(), j + r * kLanes, 0);
      v.push_back({z[0], z[1]});
    }
    for (int done = 1; done < kLength; done *= 4) {  // a loop of the tracing: five passes
      const Val<i32> k = j % done, to = (j - k) * 4 + k;
      for (int r = 1; r < 4 && done > 1; ++r) {
        const auto w = roots.wide<2>(k * (r * (kLanes / done)), 0);
        v[size_t(r)] = v[size_t(r)] * Number{w[0], w[1]};
      }
      const Number a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = times_i(v[1] - v[3]);
      v = {a + c, b - d, a - c, b + d};
      const bool last = 4 * done == kLength;
      if (!last) barrier();  // the pass before has read
      for (int r = 0; r < 4; ++r) {
        const Number& z = v[size_t(r)];
        if (last)
          out.store_wide<2>(Wide<f32, 2>{{z.re, z.im}}, g.id(), to + r * done, 0);
        else
          shared[to + r * done] = z;
      }
      if (last) break;
      barrier();
      for (int r = 0; r < 4; ++r) v[size_t(r)] = shared[j + r * kLanes];
    }
  };
  return kernel("example.fft1024", body, {.group = {kLanes}});
}

/// The plain recursion, in double precision.
static void transform(std::vector<std::complex<double>>& x) {
  const size_t n = x.size(), half = n / 2;
  if (n == 1) return;
  std::vector<std::complex<double>> even(half), odd(half);
  for (size_t k = 0; k < half; ++k) even[k] = x[2 * k], odd[k] = x[2 * k + 1];
  transform(even);
  transform(odd);
  for (size_t k = 0; k < half; ++k) {
    const std::complex<double> t = std::polar(1.0, -2 * std::numbers::pi * double(k) / double(n)) * odd[k];
    x[k] = even[k] + t;
    x[k + half] = even[k] - t;
  }
}
static std::vector<f32> transforms(const std::vector<f32>& x) {
  std::vector<f32> y(x.size());
  for (size_t first = 0; first < x.size(); first += 2 * kLength) {
    std::vector<std::complex<double>> z(kLength);
    for (size_t k = 0; k < z.size(); ++k) z[k] = {x[first + 2 * k], x[first + 2 * k + 1]};
    transform(z);
    for (size_t k = 0; k < z.size(); ++k)
      y[first + 2 * k] = f32(z[k].real()), y[first + 2 * k + 1] = f32(z[k].imag());
  }
  return y;
}

static Case fft_case() {
  const Kernel fft = fft_kernel();
  Case c;
  c.name = "example.fft1024";
  c.small = {"1", "5"};
  c.bench = {"4096"};
  c.kernels = [=] { return std::vector{fft}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t batch = parse_size(size)[0];
    std::vector<f32> x(size_t(batch) * kLength * 2), roots(kLength * 2);
    for (f32& v : x)
      v = float(int64_t(seed = seed * 6364136223846793005u + 1442695040888963407u) >> 40) * 0x1p-23f;
    for (size_t k = 0; k < kLength; ++k) {
      const double angle = -2 * std::numbers::pi * double(k) / kLength;
      roots[2 * k] = f32(std::cos(angle)), roots[2 * k + 1] = f32(std::sin(angle));
    }
    CaseProblem problem;
    problem.bytes = 16.0 * kLength * double(batch);
    problem.flops = 5.0 * kLength * 10 * double(batch);
    problem.reference = [=] { return std::vector{Array::of(transforms(x), {batch, kLength, 2})}; };
    problem.bind = [=](const Device& device) {
      const Buffer from = device.upload(std::span<const f32>(x), {batch, kLength, 2}),
                   table = device.upload(std::span<const f32>(roots), {kLength, 2}),
                   to = device.allocate<f32>({batch, kLength, 2});
      return CaseRun{[=] { device.launch(fft, {batch}, from, table, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return problem;
  };
  c.reference = Bound::relative(1e-6);
  c.webgpu = Bound::relative(1e-6);
  return c;
}

int main(int argc, char** argv) {
  CaseRegistry cases;
  cases.add(fft_case());
  return run_cases(argc, argv, cases);
}
