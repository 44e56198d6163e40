// Cases of gradients of kernels: gathers, exact sums, loops with records, updates in place, shared arrays. The
// references are written by hand, as scatters.
#include <cmath>

#include "lockstep/differentiate.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/verify.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

using Floats = std::vector<f32>;
using Doubles = std::vector<f64>;

/// A kernel's gradient with fixed inputs and the names of its results.
struct GradientProblem {
  Gradient gradient;
  Shape extent;
  std::vector<std::pair<std::string, Array>> inputs;
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::string> results;
};
CaseRun bind(const GradientProblem& p, const Device& device) {
  Arguments arguments;
  for (const auto& [name, array] : p.inputs) arguments.set(name, device.upload(array));
  for (const auto& [name, number] : p.numbers) arguments.set(name, number);
  std::vector<Buffer> results;
  for (const KernelParameter& parameter : p.gradient.parameters())
    for (const std::string& name : p.results)
      if (parameter.name == name + "_gradient") {
        Shape shape{1};
        for (const auto& [input, array] : p.inputs)
          if (input == name) shape = array.device_shape();
        results.push_back(device.allocate(parameter.storage, shape));
        arguments.set(parameter.name, results.back());
      }
  return {[=] { p.gradient.launch(device, p.extent, arguments); },
          [=] {
            std::vector<Array> arrays;
            for (const Buffer& b : results) arrays.push_back(device.download(b));
            return arrays;
          }};
}
CaseProblem problem(const GradientProblem& p) {
  CaseProblem made;
  made.bind = [p](const Device& device) { return bind(p, device); };
  return made;
}

/// A case of the kernels of `gradient`, without its problems and bounds.
Case case_of(const char* name, const Gradient& (*gradient)(), std::vector<std::string> small,
             std::vector<std::string> bench) {
  Case c;
  c.name = name;
  c.small = std::move(small);
  c.bench = std::move(bench);
  c.kernels = [gradient] { return gradient().kernels(); };
  return c;
}

const Gradient& heat_gradient() {
  static const Gradient g =
      differentiate(kernel("gradient.heat",
                           [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next, Param<f32> a) {
                             const auto sum = t[at.x(+1)] + t[at.x(-1)] + t[at.y(+1)] + t[at.y(-1)] +
                                              t[at.z(+1)] + t[at.z(-1)];
                             next[at] = fma(a, sum - 6.0f * t[at], t[at]);
                           }),
                    {{"b0"}, {}});
  return g;
}
/// Each cell gives back to where it read.
Floats heat_scatter(const Floats& g, const Shape& n, double a) {
  Doubles sums(g.size());
  const int64_t shifts[6][3] = {{0, 0, 1}, {0, 0, -1}, {0, 1, 0}, {0, -1, 0}, {1, 0, 0}, {-1, 0, 0}};
  for (int64_t z = 0; z < n[0]; ++z)
    for (int64_t y = 0; y < n[1]; ++y)
      for (int64_t x = 0; x < n[2]; ++x) {
        const double own = g[size_t((z * n[1] + y) * n[2] + x)];
        sums[size_t((z * n[1] + y) * n[2] + x)] += (1 - 6 * a) * own;
        for (const auto& s : shifts) {
          const int64_t at[3] = {std::clamp<int64_t>(z + s[0], 0, n[0] - 1),
                                 std::clamp<int64_t>(y + s[1], 0, n[1] - 1),
                                 std::clamp<int64_t>(x + s[2], 0, n[2] - 1)};
          sums[size_t((at[0] * n[1] + at[1]) * n[2] + at[2])] += a * own;
        }
      }
  return Floats(sums.begin(), sums.end());
}
Case heat_case() {
  Case c =
      case_of("gradient.heat", heat_gradient, {"1x1x1", "5x4x3", "2x17x33"}, {"128x128x128", "512x512x512"});
  c.full = {"65x64x63"};
  c.reference = Bound::relative(1e-6);
  c.webgpu = Bound::relative(1e-6);
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape n = parse_shape(size, 3);
    const Floats t = cases::uniform<f32>(n.elements(), seed), g = cases::uniform<f32>(n.elements(), seed + 1);
    const Sizes sizes{n[0], n[1], n[2]};
    CaseProblem p = problem({heat_gradient(),
                             n,
                             {{"b0", Array::of(t, sizes)}, {"b1_cotangent", Array::of(g, sizes)}},
                             {{"p0", 0.1}},
                             {"b0"}});
    p.reference = [=] { return std::vector{Array::of(heat_scatter(g, n, 0.1f), sizes)}; };
    p.bytes = 8.0 * double(n.elements());
    return p;
  };
  return c;
}

/// Diffusion with a conductivity of each cell: both fields are inputs.
const Gradient& conduction_gradient() {
  static const Gradient g = differentiate(kernel(
      "gradient.conduction", [](At<2> at, Grid<f32, 2> t, Grid<f32, 2> k, Out<f32, 2> next, Param<f32> step) {
        const auto flux = [&](const Position<2>& to) { return (k[at] + k[to]) * (t[to] - t[at]); };
        next[at] = t[at] + step * (flux(at.x(+1)) + flux(at.x(-1)) + flux(at.y(+1)) + flux(at.y(-1)));
      }));
  return g;
}
Case conduction_case() {
  Case c = case_of("gradient.conduction", conduction_gradient, {"1x1", "5x4", "33x17"}, {"4096x4096"});
  c.reference = Bound::relative(1e-5);
  c.webgpu = Bound::relative(1e-5);
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape n = parse_shape(size, 2);
    const auto t = cases::uniform<f32>(n.elements(), seed),
               k = cases::uniform<f32>(n.elements(), seed + 1, 0.5, 1),
               g = cases::uniform<f32>(n.elements(), seed + 2);
    const Sizes sizes{n[0], n[1]};
    const double step = 0.1f;
    CaseProblem p = problem(
        {conduction_gradient(),
         n,
         {{"b0", Array::of(t, sizes)}, {"b1", Array::of(k, sizes)}, {"b2_cotangent", Array::of(g, sizes)}},
         {{"p0", step}},
         {"b0", "b1", "p0"}});
    p.reference = [=] {
      Doubles dt(t.size()), dk(t.size());
      double dstep = 0;
      for (int64_t y = 0; y < n[0]; ++y)
        for (int64_t x = 0; x < n[1]; ++x)
          for (const auto& [sy, sx] : {std::pair{0, 1}, {0, -1}, {1, 0}, {-1, 0}}) {
            const auto own = size_t(y * n[1] + x);
            const auto to = size_t(std::clamp<int64_t>(y + sy, 0, n[0] - 1) * n[1] +
                                   std::clamp<int64_t>(x + sx, 0, n[1] - 1));
            const double sum = double(k[own]) + k[to], slope = double(t[to]) - t[own];
            dt[to] += step * sum * g[own];
            dt[own] -= step * sum * g[own];
            dk[to] += step * slope * g[own];
            dk[own] += step * slope * g[own];
            dstep += sum * slope * g[own];
          }
      for (size_t j = 0; j < t.size(); ++j) dt[j] += g[j];
      return std::vector{Array::of(Floats(dt.begin(), dt.end()), sizes),
                         Array::of(Floats(dk.begin(), dk.end()), sizes), Array::of(Floats{f32(dstep)})};
    };
    p.bytes = 20.0 * double(n.elements());
    return p;
  };
  return c;
}

/// Reads through an index array: exact sums, so that the reference has the same bits.
const Gradient& indexed_gradient() {
  static const Gradient g =
      differentiate(kernel("gradient.indexed", [](At<1> at, Grid<f32, 1> x, Grid<i32, 1> index,
                                                  Out<f32, 1> y) { y[at] = 2.0f * x[index[at]]; }),
                    {{"b0"}, {}});
  return g;
}
Case indexed_case() {
  Case c = case_of("gradient.indexed", indexed_gradient, {"1", "1023", "20000"}, {"4194304"});
  c.make = [](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0], targets = n / 7 + 1;
    const auto x = cases::uniform<f32>(targets, seed), g = cases::uniform<f32>(n, seed + 1);
    std::vector<i32> index;
    cases::Random random(seed + 2);
    for (int64_t k = 0; k < n; ++k) index.push_back(i32(random.bits() % uint64_t(targets)));
    CaseProblem p = problem({indexed_gradient(),
                             {n},
                             {{"b0", Array::of(x)}, {"b1", Array::of(index)}, {"b2_cotangent", Array::of(g)}},
                             {},
                             {"b0"}});
    p.reference = [=] {
      std::vector<long double> sums(
          x.size());  // wide enough for these terms, so that the order does not matter
      for (size_t k = 0; k < g.size(); ++k) sums[size_t(index[k])] += 2.0L * g[k];
      return std::vector{Array::of(Floats(sums.begin(), sums.end()))};
    };
    p.bytes = 4.0 * double(2 * n + targets);
    return p;
  };
  return c;
}

/// Loops whose lengths are data, one in the other, with a break, and an update in place.
const Gradient& loops_gradient() {
  static const Gradient g =
      differentiate(kernel("gradient.loops",
                           [](At<1> at, InOut<f64, 1> x, Grid<f64, 1> a, Grid<i32, 1> n, Param<f64> p) {
                             Var<f64> v = x[at];
                             for_(0, Val<i32>(n[at]), [&](Val<i32> i) {
                               v = sin(v) + p * a[(at.x + i) % a.size(0)];
                               for_(0, i + 1, [&](Val<i32>) {
                                 v = v * cos(v) + 0.3;
                                 break_if(v > 0.9);
                               });
                             });
                             x[at] = x[at] * v;
                           }),
                    {{"b0", "b1", "p0"}, {}});
  return g;
}
/// Records of up to `most` passes of each loop: long ones are in memory, short ones in arrays of the lanes.
Case loops_case(const char* name, int most) {
  Case c = case_of(name, loops_gradient, {"1", "37", "1025"}, {"262144"});
  c.dtype = "f64";
  c.needs_f64 = true;
  c.make = [most](const std::string& size, uint64_t seed) {
    const int64_t count = parse_shape(size, 1)[0];
    std::vector<i32> n;
    for (int64_t k = 0; k < count; ++k) n.push_back(i32(k % (most + 1)));
    CaseProblem p = problem({loops_gradient(),
                             {count},
                             {{"b0", Array::of(cases::uniform<f64>(count, seed))},
                              {"b1", Array::of(cases::uniform<f64>(17, seed + 1))},
                              {"b2", Array::of(n)},
                              {"b0_cotangent", Array::of(cases::uniform<f64>(count, seed + 2))}},
                             {{"p0", 0.4}},
                             {"b0", "b1", "p0"}});
    p.bytes = 28.0 * double(count);
    return p;
  };
  return c;
}

/// A product by tiles in shared arrays, which each pass of a loop fills again.
constexpr int kTile = 8;
const Gradient& tiles_gradient() {
  static const Gradient g = differentiate(
      kernel("gradient.tiles",
             [](Group<2> at, Grid<f32, 2> a, Grid<f32, 2> b, Out<f32, 2> c) {
               SharedArray<f32> left(kTile * kTile), right(kTile * kTile);
               const Val<i32> col = at.global(0), row = at.global(1), x = at.local(0), y = at.local(1);
               Var<f32> sum(0.0f);
               for_(0, a.size(1), kTile, [&](Val<i32> first) {
                 left[y * kTile + x] = a(row, first + x);
                 right[y * kTile + x] = b(first + y, col);
                 barrier();
                 for_(0, kTile, [&](Val<i32> k) { sum = sum + left[y * kTile + k] * right[k * kTile + x]; });
                 barrier();
               });
               c(row, col) = Val<f32>(sum);
             },
             {.group = {kTile, kTile}}));
  return g;
}
/// Sizes: tiles of rows, of the sum, of columns.
Case tiles_case() {
  Case c = case_of("gradient.tiles", tiles_gradient, {"1x1x1", "2x3x1", "3x2x4"}, {"64x64x64"});
  c.reference = Bound::relative(1e-6);
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape tiles = parse_shape(size, 3);
    const int64_t m = tiles[0] * kTile, n = tiles[1] * kTile, k = tiles[2] * kTile;
    const Floats a = cases::uniform<f32>(m * n, seed), b = cases::uniform<f32>(n * k, seed + 1),
                 g = cases::uniform<f32>(m * k, seed + 2);
    CaseProblem p = problem(
        {tiles_gradient(),
         {tiles[0], tiles[2]},
         {{"b0", Array::of(a, {m, n})}, {"b1", Array::of(b, {n, k})}, {"b2_cotangent", Array::of(g, {m, k})}},
         {},
         {"b0", "b1"}});
    p.reference = [=] {
      Doubles da(a.size()), db(b.size());
      for (int64_t i = 0; i < m; ++i)
        for (int64_t l = 0; l < n; ++l)
          for (int64_t j = 0; j < k; ++j) {
            da[size_t(i * n + l)] += double(g[size_t(i * k + j)]) * b[size_t(l * k + j)];
            db[size_t(l * k + j)] += double(a[size_t(i * n + l)]) * g[size_t(i * k + j)];
          }
      return std::vector{Array::of(Floats(da.begin(), da.end()), {m, n}),
                         Array::of(Floats(db.begin(), db.end()), {n, k})};
    };
    p.flops = 4.0 * double(m * n * k);
    return p;
  };
  return c;
}

}  // namespace

void add_gradient_cases(CaseRegistry& registry) {
  registry.add(heat_case());
  registry.add(conduction_case());
  registry.add(indexed_case());
  registry.add(loops_case("gradient.loops", 8));
  registry.add(loops_case("gradient.loops.short", 3));
  registry.add(tiles_case());
}

}  // namespace lockstep
