// Cases of the engine itself: memory, launches, splitting, storage types.
#include "verify/cases/engine_cases.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "verify/inputs.hpp"

namespace lockstep {

namespace {

using cases::uniform;

std::vector<std::string> vector_sizes() { return {"0", "1", "17", "1000", "65537"}; }
/// 1-D data as rows, so that the bench sizes beyond one axis stay legal.
Shape as_rows(const std::string& size) {
  const std::vector<int64_t> n = parse_size(size);
  return n.size() == 1 ? Shape{1, n[0]} : Shape{n[0], n[1]};
}

Case copy_case() {
  static const Kernel copy =
      kernel("engine.copy", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a[at]; });
  Case c;
  c.name = "engine.copy";
  c.small = vector_sizes();
  c.bench = {"2048x16384", "16384x16384"};
  c.kernels = [] { return std::vector{copy}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape shape = as_rows(size);
    auto a = std::make_shared<std::vector<f32>>(uniform<f32>(shape.elements(), seed));
    CaseProblem p;
    p.bytes = 8.0 * double(shape.elements());
    p.reference = [=] { return std::vector{Array::of(std::vector<f32>(*a), shape)}; };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(std::span<const f32>(*a), shape), to = device.allocate<f32>(shape);
      return CaseRun{[=] { device.launch(copy, shape, from, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return p;
  };
  return c;
}

Case axpy_case() {
  static const Kernel axpy = kernel("engine.axpy", [](At<2> at, Grid<f32, 2> x, Grid<f32, 2> y, Out<f32, 2> r,
                                                      Param<f32> a) { r[at] = a * x[at] + y[at]; });
  Case c;
  c.name = "engine.axpy";
  c.small = vector_sizes();
  c.bench = {"2048x16384", "16384x16384"};
  c.kernels = [] { return std::vector{axpy}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape shape = as_rows(size);
    auto x = std::make_shared<std::vector<f32>>(uniform<f32>(shape.elements(), seed));
    auto y = std::make_shared<std::vector<f32>>(uniform<f32>(shape.elements(), seed + 1));
    CaseProblem p;
    p.bytes = 12.0 * double(shape.elements());
    p.flops = 2.0 * double(shape.elements());
    p.reference = [=] {
      std::vector<f32> r(x->size());
      for (size_t n = 0; n < r.size(); ++n) r[n] = std::fma(0.75f, (*x)[n], (*y)[n]);
      return std::vector{Array::of(r, shape)};
    };
    p.bind = [=](const Device& device) {
      const Buffer bx = device.upload(std::span<const f32>(*x), shape),
                   by = device.upload(std::span<const f32>(*y), shape);
      const Buffer r = device.allocate<f32>(shape);
      return CaseRun{[=] { device.launch(axpy, shape, bx, by, r, 0.75f); },
                     [=] { return std::vector{device.download(r)}; }};
    };
    return p;
  };
  c.webgpu = Bound::absolute(1e-6);
  return c;
}

template <class T>
Case heat_case(const std::string& name, Boundary boundary) {
  const Kernel heat = kernel(name, [=](At<3> at, Grid<T, 3> t0, Out<T, 3> next, Param<T> a) {
    const auto t = t0.with(boundary);
    const auto sum = t[at.x(+1)] + t[at.x(-1)] + t[at.y(+1)] + t[at.y(-1)] + t[at.z(+1)] + t[at.z(-1)];
    next[at] = fma(a, sum - T(6) * t[at], t[at]);
  });
  Case c;
  c.name = name;
  c.dtype = std::string(lockstep::name(detail::kType<T>));
  c.small = {"1x1x1", "1x1x7", "3x5x1", "5x4x33", "17x19x70"};
  c.bench = {"128x128x128", "256x256x256", "512x512x512"};
  c.needs_f64 = sizeof(T) == 8;
  c.kernels = [heat] { return std::vector{heat}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 3);
    auto t = std::make_shared<std::vector<T>>(uniform<T>(shape.elements(), seed));
    CaseProblem p;
    p.bytes = 2.0 * sizeof(T) * double(shape.elements());
    p.flops = 9.0 * double(shape.elements());
    p.reference = [=] {
      const int64_t nz = shape[0], ny = shape[1], nx = shape[2];
      std::vector<T> r(t->size());
      const T a = T(0.1f);
      const auto at = [&](int64_t z, int64_t y, int64_t x) -> T {
        const auto fix = [&](int64_t i, int64_t n) {
          return boundary == Boundary::periodic ? (i + n) % n : std::clamp<int64_t>(i, 0, n - 1);
        };
        if (boundary == Boundary::zero && (z < 0 || y < 0 || x < 0 || z >= nz || y >= ny || x >= nx))
          return T(0);
        return (*t)[size_t((fix(z, nz) * ny + fix(y, ny)) * nx + fix(x, nx))];
      };
      const auto cell = [&](int64_t z, int64_t y, int64_t x, auto read) {
        const T sum = read(z, y, x + 1) + read(z, y, x - 1) + read(z, y + 1, x) + read(z, y - 1, x) +
                      read(z + 1, y, x) + read(z - 1, y, x);
        const T own = read(z, y, x);
        return std::fma(a, std::fma(T(-6), own, sum), own);
      };
      const auto direct = [&](int64_t z, int64_t y, int64_t x) {
        return (*t)[size_t((z * ny + y) * nx + x)];
      };
      for (int64_t z = 0; z < nz; ++z)
        for (int64_t y = 0; y < ny; ++y)
          for (int64_t x = 0; x < nx; ++x) {
            const bool inner = z > 0 && y > 0 && x > 0 && z + 1 < nz && y + 1 < ny && x + 1 < nx;
            r[size_t((z * ny + y) * nx + x)] = inner ? cell(z, y, x, direct) : cell(z, y, x, at);
          }
      return std::vector{Array::of(r, shape)};
    };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(std::span<const T>(*t), shape), to = device.allocate<T>(shape);
      return CaseRun{[=] { device.launch(heat, shape, from, to, T(0.1f)); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return p;
  };
  c.webgpu = Bound::absolute(1e-6);
  return c;
}

/// An empty kernel, launched a thousand times: the cost of a launch, from a stream or out of a graph.
Case launch_case(bool graph) {
  static const Kernel empty =
      kernel("engine.empty", [](At<1> at, Out<u32, 1> out) { if_(at.x < -1, [&] { out[at] = 0u; }); });
  constexpr int kLaunches = 1000;
  Case c;
  c.name = graph ? "engine.graph_launch" : "engine.launch";
  c.dtype = "u32";
  c.small = {"1"};
  c.bench = {"1"};
  c.kernels = [] { return std::vector{empty}; };
  c.make = [=](const std::string& size, uint64_t) {
    const Shape shape = parse_shape(size, 1);
    CaseProblem p;
    p.operations = kLaunches;
    p.reference = [=] { return std::vector{Array::of(std::vector<u32>(size_t(shape[0]), 7u))}; };
    p.bind = [=](const Device& device) {
      const Buffer out = device.upload(std::vector<u32>(size_t(shape[0]), 7u));
      const auto launches = [=] {
        for (int n = 0; n < kLaunches; ++n) device.launch(empty, shape, out);
      };
      const auto outputs = [=] { return std::vector{device.download(out)}; };
      if (!graph) return CaseRun{launches, outputs};
      const Graph recorded = device.record(launches);
      return CaseRun{[=] { device.replay(recorded); }, outputs};
    };
    return p;
  };
  return c;
}

/// Every point writes a mix of its coordinates; with lowered limits the domain needs many dispatches.
template <int N>
Case dispatch_case() {
  static const Kernel mark = kernel(fmt::format("engine.dispatch{}", N), [](At<N> at, Out<u32, N> out) {
    Val<u32> v = cast<u32>(Val<i32>(at.x)) * 2654435761u;
    if constexpr (N > 1) v = (v ^ cast<u32>(Val<i32>(at.y))) * 2246822519u;
    if constexpr (N > 2) v = (v ^ cast<u32>(Val<i32>(at.z))) * 3266489917u;
    out[at] = v + cast<u32>(at.extent(0));
  });
  Case c;
  c.name = fmt::format("engine.dispatch.{}d", N);
  c.dtype = "u32";
  c.small = N == 1   ? std::vector<std::string>{"1", "255", "100003"}
            : N == 2 ? std::vector<std::string>{"1x1", "700x3", "3x700", "129x1025"}
                     : std::vector<std::string>{"1x1x1", "67x5x3", "3x67x130"};
  c.full = N == 1 ? std::vector<std::string>{"50000000"} : std::vector<std::string>{};
  c.lower_limits = [](Limits& limits) {
    limits.groups = {std::min<int64_t>(limits.groups[0], 7), std::min<int64_t>(limits.groups[1], 5),
                     std::min<int64_t>(limits.groups[2], 3)};
  };
  c.kernels = [] { return std::vector{mark}; };
  c.make = [](const std::string& size, uint64_t) {
    const Shape shape = parse_shape(size, N);
    CaseProblem p;
    p.bytes = 4.0 * double(shape.elements());
    p.reference = [=] {
      std::vector<u32> out(size_t(shape.elements()));
      const int64_t nx = shape[N - 1], ny = N > 1 ? shape[N - 2] : 1;
      for (int64_t n = 0; n < shape.elements(); ++n) {
        u32 v = u32(n % nx) * 2654435761u;
        if (N > 1) v = (v ^ u32(n / nx % ny)) * 2246822519u;
        if (N > 2) v = (v ^ u32(n / nx / ny)) * 3266489917u;
        out[size_t(n)] = v + u32(nx);
      }
      return std::vector{Array::of(out, shape)};
    };
    p.bind = [=](const Device& device) {
      const Buffer out = device.allocate<u32>(shape);
      return CaseRun{[=] { device.launch(mark, shape, out); },
                     [=] { return std::vector{device.download(out)}; }};
    };
    return p;
  };
  return c;
}

u32 scramble(u32 n) {
  n ^= n >> 16;
  n *= 0x7feb352du;
  n ^= n >> 15;
  n *= 0x846ca68bu;
  return n ^ (n >> 16);
}

/// Fills a buffer, then reads it at scattered places. `lowered`: the buffer exceeds a binding limit of 64
/// KiB. Otherwise for real: more than 6 GiB, or more than 2^31 elements.
Case buffer_case(bool lowered) {
  static const Kernel fill = kernel("engine.buffer_fill", [](At<2> at, Out<u32, 2> out) {
    Val<u32> n = cast<u32>(Val<i32>(at.y)) * cast<u32>(at.extent(0)) + cast<u32>(Val<i32>(at.x));
    n = n ^ n >> 16u;
    n = n * 0x7feb352du;
    n = n ^ n >> 15u;
    n = n * 0x846ca68bu;
    out[at] = n ^ n >> 16u;
  });
  static const Kernel gather =
      kernel("engine.buffer_gather", [](At<1> at, Grid<u32, 2> in, Grid<i32, 1> row, Grid<i32, 1> column,
                                        Out<u32, 1> out) { out[at] = in(row[at], column[at]); });
  Case c;
  c.name = lowered ? "engine.large_buffer" : "engine.huge_buffer";
  c.dtype = "u32";
  if (lowered) {
    c.small = {"1x1", "17x1000", "300x1021"};
    c.lower_limits = [](Limits& limits) {
      limits.binding_bytes = std::min<int64_t>(limits.binding_bytes, 1 << 18);
    };
  } else {
    c.full = {"1600000x1024", "2200000x1024"};
  }
  c.kernels = [] { return std::vector{fill, gather}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 2);
    constexpr int kSamples = 4099;
    cases::Random random(seed);
    auto rows = std::make_shared<std::vector<i32>>(kSamples);
    auto columns = std::make_shared<std::vector<i32>>(kSamples);
    for (int n = 0; n < kSamples; ++n) {
      (*rows)[n] = n == 0 ? i32(shape[0] - 1) : i32(random.bits() % uint64_t(shape[0]));
      (*columns)[n] = n == 0 ? i32(shape[1] - 1) : i32(random.bits() % uint64_t(shape[1]));
    }
    CaseProblem p;
    p.bytes = 4.0 * double(shape.elements());
    p.reference = [=] {
      std::vector<u32> out(kSamples);
      for (int n = 0; n < kSamples; ++n)
        out[n] = scramble(u32((*rows)[n]) * u32(shape[1]) + u32((*columns)[n]));
      return std::vector{Array::of(out)};
    };
    p.bind = [=](const Device& device) {
      const Buffer big = device.allocate<u32>(shape), r = device.upload(*rows), k = device.upload(*columns),
                   out = device.allocate<u32>({kSamples});
      return CaseRun{[=] {
                       device.launch(fill, shape, big);
                       device.launch(gather, {kSamples}, big, r, k, out);
                     },
                     [=] { return std::vector{device.download(out)}; }};
    };
    return p;
  };
  return c;
}

/// f32 through 16-bit storage and back, all 2^16 patterns and rounding cases; bytes as u8.
Case storage_case() {
  static const Kernel convert = kernel("engine.storage", [](At<1> at, Grid<f32, 1> in, Out<f16, 1> half,
                                                            Out<bf16, 1> brain, Out<uint8_t, 1> byte) {
    half[at] = in[at];
    brain[at] = in[at];
    byte[at] = cast<u32>(abs(in[at]));
  });
  static const Kernel back =
      kernel("engine.storage_back", [](At<1> at, Grid<f16, 1> half, Grid<bf16, 1> brain,
                                       Grid<uint8_t, 1> byte, Out<f32, 1> a, Out<f32, 1> b, Out<u32, 1> d) {
        a[at] = half[at];
        b[at] = brain[at];
        d[at] = byte[at];
      });
  Case c;
  c.name = "engine.storage";
  c.dtype = "f16";
  c.small = {"1", "4096", "70001"};
  c.kernels = [] { return std::vector{convert, back}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 1);
    auto in = std::make_shared<std::vector<f32>>(size_t(shape[0]));
    cases::Random random(seed);
    for (size_t n = 0; n < in->size(); ++n) {
      const uint16_t h = uint16_t(random.u32());
      // Values near f16 numbers and halfway between them; every fourth an arbitrary finite pattern.
      const int exponent = int(random.u32() % 44) - 36;
      f32 v = std::ldexp(f32(1024 + (h & 1023)) + f32(random.u32() % 5) * 0.25f, exponent);
      if (n % 4 == 3) {
        v = std::bit_cast<f32>(random.u32());
        if (!std::isfinite(v)) v = f32(n);
      }
      (*in)[n] = h & 1 ? -v : v;
    }
    CaseProblem p;
    p.bytes = 16.0 * double(shape[0]);
    p.bind = [=](const Device& device) {
      const Buffer a = device.upload(*in), h = device.allocate<f16>(shape), b = device.allocate<bf16>(shape),
                   y = device.allocate<uint8_t>(shape);
      const Buffer fa = device.allocate<f32>(shape), fb = device.allocate<f32>(shape),
                   d = device.allocate<u32>(shape);
      return CaseRun{[=] {
                       device.launch(convert, shape, a, h, b, y);
                       device.launch(back, shape, h, b, y, fa, fb, d);
                     },
                     [=] {
                       return std::vector{device.download(h),  device.download(b),  device.download(y),
                                          device.download(fa), device.download(fb), device.download(d)};
                     }};
    };
    return p;
  };
  return c;
}

/// Device::copy, there and back, out of a graph.
Case device_copy_case() {
  constexpr int kCopies = 10;
  Case c;
  c.name = "engine.device_copy";
  c.small = {"0", "1000", "300001"};
  c.full = {"1000003"};
  c.bench = {"16384", "262144", "1048576", "16777216", "134217728"};
  c.make = [=](const std::string& size, uint64_t) {
    const Shape shape = parse_shape(size, 1);
    CaseProblem p;
    p.operations = kCopies;
    p.bytes = 8.0 * kCopies * double(shape[0]);
    const auto v = std::make_shared<std::vector<f32>>(size_t(shape[0]));
    for (size_t k = 0; k < v->size(); ++k) (*v)[k] = float(k % 1000003);
    p.reference = [=] { return std::vector{Array::of(*v), Array::of(*v)}; };
    p.bind = [=](const Device& device) {
      const Buffer a = device.upload(*v), b = device.allocate<f32>(shape);
      const Graph copies = device.record([&] {
        for (int n = 0; n < kCopies; n += 2) device.copy(a, b), device.copy(b, a);
      });
      return CaseRun{[=] { device.replay(copies); },
                     [=] { return std::vector{device.download(a), device.download(b)}; }};
    };
    return p;
  };
  return c;
}

}  // namespace

void add_engine_cases(CaseRegistry& registry) {
  registry.add(copy_case());
  registry.add(device_copy_case());
  registry.add(axpy_case());
  registry.add(heat_case<f32>("engine.heat", Boundary::clamp));
  registry.add(heat_case<f32>("engine.heat_periodic", Boundary::periodic));
  registry.add(heat_case<f32>("engine.heat_zero", Boundary::zero));
  registry.add(heat_case<f64>("engine.heat_f64", Boundary::clamp));
  registry.add(launch_case(false));
  registry.add(launch_case(true));
  registry.add(dispatch_case<1>());
  registry.add(dispatch_case<2>());
  registry.add(dispatch_case<3>());
  registry.add(buffer_case(true));
  registry.add(buffer_case(false));
  registry.add(storage_case());
  cases::add_language_cases(registry);
  cases::add_parameter_cases(registry);
}

}  // namespace lockstep
