// Cases of the language's words: boundary rules, elements, atomic operations, groups, checks.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>

#include "lockstep/kernel/elements.hpp"
#include "verify/cases/engine_cases.hpp"
#include "verify/mapping.hpp"

namespace lockstep::cases {

namespace {

constexpr int kLanes = 64, kRow = 16;

/// Explicit coordinates under each boundary rule, on rows of 16; variables in vectors and arrays; select of
/// numbers; a check that holds.
Case rules_case() {
  static const Kernel k = kernel("engine.rules", [](At<1> at, Grid<f32, 2> in, Out<f32, 1> out) {
    const Val<i32> n = at.x, y = n / kRow, x = n % kRow;
    VarVec<f32, 3> v =
        Vec3<f32>(in.clamped()(y - 3, x + 20), in.periodic()(y - 7, x + 37), in.zero()(y + 1, x - 2));
    v += Vec3<f32>(0.5f, 0.25f, 0.125f);
    v *= 2.0f;
    VarArray<f32, 3> a([&](int axis) { return Vec3<f32>(v)[axis]; });
    a[2] -= a[1];
    check(a[0] + a[1] < 100.0f, "sum in range", a[1]);
    print_if(a[0] > 100.0f, "never");
    out[n] = a[0] + a[1] * a[2] + select(x > 7, 1.0f, -1.0f);
  });
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    if (count > 0) device.launch(k, {count}, in.reshape({count / kRow, kRow}), out);
  };
  m.reference = [](const std::vector<f32>& in) {
    const int rows = int(in.size()) / kRow;
    const auto at = [&](int y, int x) { return in[size_t(y * kRow + x)]; };
    const auto wrapped = [](int i, int n) { return ((i % n) + n) % n; };
    std::vector<f32> out(in.size());
    for (int n = 0; n < int(in.size()); ++n) {
      const int y = n / kRow, x = n % kRow;
      f32 a = at(std::clamp(y - 3, 0, rows - 1), std::clamp(x + 20, 0, kRow - 1));
      f32 b = at(wrapped(y - 7, rows), wrapped(x + 37, kRow));
      f32 c = y + 1 < rows && x >= 2 ? at(y + 1, x - 2) : 0.0f;
      a = (a + 0.5f) * 2, b = (b + 0.25f) * 2, c = (c + 0.125f) * 2;
      out[size_t(n)] = std::fma(b, c - b, a) + (x > 7 ? 1.0f : -1.0f);
    }
    return out;
  };
  Case c = mapping_case("engine.rules", {k}, {"0", "16", "48", "1600"}, m);
  c.webgpu = Bound::absolute(1e-5);
  return c;
}

/// Vectors and complex numbers as elements of buffers and of shared arrays. Whole numbers: no product is rounded.
Case elements_case() {
  static const Kernel k = kernel(
      "engine.elements",
      [](Group<1> g, Grid<f32, 2> in, InOut<f32, 2> out, Out<f32, 3> spectrum) {
        const SharedElements<Complex<f32>> numbers(kLanes);
        const SharedElements<Vec3<f32>> vectors(kLanes);
        const Val<i32> n = g.global(), lane = g.lane();
        const Vec3<f32> v = elements<Vec3<f32>>(in)[n], next = elements<Vec3<f32>>(in.periodic())(n + 1);
        numbers[lane] = Complex<f32>{v.x(), v.y()};
        vectors[lane] = v;
        vectors[lane] += next;
        barrier();
        const Complex<f32> z = numbers[kLanes - 1 - lane], w = times_i(z) * conj(numbers[lane]) + -z;
        const Vec3<f32> sum = vectors[(lane + 1) % kLanes];
        elements<Complex<f32>>(spectrum)(0, n) = w;
        elements<Complex<f32>>(spectrum)(1, n) = select(w.re > 0.0f, w * v.z(), w / 2.0f);
        const auto to = elements<Vec4<f32>>(out);
        to[n] = Vec4<f32>(sum.x(), sum.y(), sum.z(), norm(z));
        to[n] *= 2.0f;
        to[n] -= Vec4<f32>(v.x(), 1.0f, next.z(), dot(v, next));
      },
      {.group = {kLanes}});
  static const Kernel points =
      kernel("engine.vector_points", [](At<1> at, Grid<f32, 2> in, InOut<f32, 2> out) {
        const auto v = elements<Vec3<f32>>(in);
        const Vec3<f32> along = v[at.x(+1)] - v[at.x(-2)];
        elements<Vec4<f32>>(out)[at] += Vec4<f32>(along.x(), along.y(), along.z(), 0.0f);
      });
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) {
    std::vector<f32> values = uniform<f32>(count, seed, -100, 100);
    for (f32& v : values) v = std::trunc(v);
    return values;
  };
  m.outputs = [](int64_t count) { return count / 3 * 8; };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    const int64_t n = count / 3;
    if (n == 0) return;
    const Buffer vectors = out.rows(0, 4 * n).reshape({n, 4});
    device.launch(k, {n / kLanes}, in.reshape({n, 3}), vectors, out.rows(4 * n, 4 * n).reshape({2, n, 2}));
    device.launch(points, {n}, in.reshape({n, 3}), vectors);
  };
  m.reference = [](const std::vector<f32>& in) {
    const int n = int(in.size()) / 3;
    std::vector<f32> out(size_t(8 * n));
    const auto at = [&](int i, int c) { return in[size_t(3 * i + c)]; };
    for (int i = 0; i < n; ++i) {
      const int first = i / kLanes * kLanes, other = first + kLanes - 1 - i % kLanes,
                after = first + (i + 1) % kLanes;
      const auto z = std::complex(at(other, 0), at(other, 1)), own = std::complex(at(i, 0), at(i, 1));
      const auto turned = std::complex(-z.imag(), z.real());
      const auto w = std::complex(turned.real() * own.real() + turned.imag() * own.imag() - z.real(),
                                  turned.imag() * own.real() - turned.real() * own.imag() - z.imag());
      const auto second = w.real() > 0 ? w * at(i, 2) : w / 2.0f;
      f32 product = 0;
      for (int c = 0; c < 3; ++c) product += at(i, c) * at((i + 1) % n, c);
      const f32 less[] = {at(i, 0), 1, at((i + 1) % n, 2), product};
      for (int c = 0; c < 4; ++c) {
        const f32 sum = c < 3 ? at(after, c) + at((after + 1) % n, c) : std::norm(z);
        const f32 along = c < 3 ? at(std::min(i + 1, n - 1), c) - at(std::max(i - 2, 0), c) : 0;
        out[size_t(4 * i + c)] = sum * 2 - less[c] + along;
      }
      out[size_t(4 * n + 2 * i)] = w.real(), out[size_t(4 * n + 2 * i + 1)] = w.imag();
      out[size_t(6 * n + 2 * i)] = second.real(), out[size_t(6 * n + 2 * i + 1)] = second.imag();
    }
    return out;
  };
  Case c = mapping_case("engine.elements", {k, points}, {"0", "192", "1920", "19200"}, m);
  c.bench = {"1920000"};
  return c;
}

/// Atomic operations on elements of two axes and of shared arrays; a maximum by compare-and-swap.
Case element_atomics_case() {
  static constexpr int kBins = 8, kWords = 5;
  static const Kernel k =
      kernel("engine.element_atomics",
             [](Group<1> g, Grid<u32, 1> in, InOut<u32, 2> out) {
               SharedArray<u32> s(2 * kBins);
               const Val<i32> n = g.global(), size = in.size(0), lane = g.lane();
               if_(lane < 2 * kBins, [&] { s[lane] = 0u; });
               barrier();
               if_(n < size, [&] {
                 const Val<u32> v = in[n];
                 const Val<i32> bin = cast<i32>(v % u32(kBins));
                 s.atomic_add(bin, 1u);
                 s[bin + kBins].atomic_max(v);
                 out(0, bin).atomic_xor(v);
                 out(1, bin).atomic_min(~v);
                 Var<u32> seen = 0u;
                 loop_([&] {  // the greatest v >> 3, as compare-and-swap makes any operation
                   break_if(seen >= (v >> 3u));
                   const Val<u32> old = out(4, bin).atomic_compare_exchange(seen, v >> 3u);
                   break_if(old == seen);
                   seen = old;
                 });
               });
               barrier();
               if_(lane < kBins, [&] {
                 out(2, lane).atomic_add(s[lane]);
                 out(3, lane).atomic_max(s[lane + kBins]);
               });
             },
             {.group = {kLanes}});
  Mapping<u32, u32> m;
  m.input = words;
  m.outputs = [](int64_t) { return int64_t(kWords * kBins); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {(count + kLanes - 1) / kLanes}, in, out.reshape({kWords, kBins}));
  };
  m.reference = [](const std::vector<u32>& in) {
    std::vector<u32> out(kWords * kBins, 0);
    for (u32 v : in) {
      const size_t bin = v % kBins;
      out[bin] ^= v;
      out[kBins + bin] = std::min(out[kBins + bin], ~v);
      ++out[2 * kBins + bin];
      out[3 * kBins + bin] = std::max(out[3 * kBins + bin], v);
      out[4 * kBins + bin] = std::max(out[4 * kBins + bin], v >> 3);
    }
    return out;
  };
  return mapping_case("engine.element_atomics", {k}, {"0", "1", "1000", "20003"}, m);
}

/// Atomic operations on 64 bits of a buffer, where a device has them; carries and compare-and-swap beyond 32 bits.
Case wide_atomics_case() {
  static constexpr int kBins = 8;
  static const Kernel k =
      kernel("engine.wide_atomics", [](At<1> at, Grid<u64, 1> in, InOut<u64, 2> out, InOut<i64, 1> least) {
        const Val<u64> v = in[at];
        const Val<i32> bin = cast<i32>(v % u64(kBins));
        out(0, bin).atomic_add(v);
        out(1, bin).atomic_max(v);
        out(2, bin).atomic_xor(v);
        least[bin].atomic_min(bitcast<i64>(v));
        Var<u64> seen = u64(0);
        loop_([&] {
          break_if(seen >= (v >> 1u));
          const Val<u64> old = out(3, bin).atomic_compare_exchange(seen, v >> 1u);
          break_if(old == seen);
          seen = old;
        });
      });
  Mapping<u64, u64> m;
  m.input = [](int64_t count, uint64_t seed) {
    Random random(seed);
    std::vector<u64> values(static_cast<size_t>(count));
    for (u64& v : values) v = random.bits();
    return values;
  };
  m.outputs = [](int64_t) { return int64_t(4 * kBins); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    const Buffer least = device.allocate<i64>({kBins});
    device.clear(least);
    device.launch(k, {count}, in, out.reshape({4, kBins}), least);
    const auto minima = device.download<i64>(least);
    std::vector<u64> row = device.download<u64>(out.rows(2 * kBins, kBins));
    for (size_t b = 0; b < row.size(); ++b) row[b] ^= u64(minima[b]);
    device.write(out.rows(2 * kBins, kBins), row.data(), int64_t(sizeof(u64)) * kBins);
  };
  m.reference = [](const std::vector<u64>& in) {
    std::vector<u64> out(4 * kBins, 0);
    std::vector<i64> least(kBins, 0);
    for (u64 v : in) {
      const size_t bin = v % kBins;
      out[bin] += v;
      out[kBins + bin] = std::max(out[kBins + bin], v);
      out[2 * kBins + bin] ^= v;
      out[3 * kBins + bin] = std::max(out[3 * kBins + bin], v >> 1);
      least[bin] = std::min(least[bin], i64(v));
    }
    for (size_t b = 0; b < kBins; ++b) out[2 * kBins + b] ^= u64(least[b]);
    return out;
  };
  Case c = mapping_case("engine.wide_atomics", {k}, {"0", "1", "1000", "20003"}, m);
  c.needs_f64 = true;
  return c;
}

/// Sums of floats in no order, in a buffer and in a shared array: of small whole numbers, which no order can
/// change.
Case float_add_case() {
  static constexpr int kBins = 8;
  static const Kernel k = kernel("engine.float_add",
                                 [](Group<1> g, Grid<f32, 1> in, InOut<f32, 1> out) {
                                   SharedArray<f32> s(kBins);
                                   const Val<i32> n = g.global(), size = in.size(0), lane = g.lane();
                                   if_(lane < kBins, [&] { s[lane] = 0.0f; });
                                   barrier();
                                   if_(n < size, [&] {
                                     s[n % kBins].unordered_atomic_add(in[n]);
                                     out(n % kBins + kBins).unordered_atomic_add(in[n] * 2.0f);
                                   });
                                   barrier();
                                   if_(lane < kBins, [&] { out[lane].unordered_atomic_add(s[lane]); });
                                 },
                                 {.group = {kLanes}});
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) {
    std::vector<f32> values = uniform<f32>(count, seed, -100, 100);
    for (f32& v : values) v = std::trunc(v);
    return values;
  };
  m.outputs = [](int64_t) { return int64_t(2 * kBins); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {(count + kLanes - 1) / kLanes}, in, out);
  };
  m.reference = [](const std::vector<f32>& in) {
    std::vector<f32> out(2 * kBins, 0.0f);
    for (size_t n = 0; n < in.size(); ++n) out[n % kBins] += in[n], out[n % kBins + kBins] += 2 * in[n];
    return out;
  };
  return mapping_case("engine.float_add", {k}, {"0", "1", "1000", "20003"}, m);
}

/// Votes, ballots, shuffles, scans and reductions of a group.
Case group_words_case() {
  static constexpr int kResults = 8;
  static const Kernel k = kernel(
      "engine.group_words",
      [](Group<1> g, Grid<f32, 1> in, Out<u32, 2> out) {
        const Val<i32> n = g.global(), lane = g.lane();
        const Val<f32> v = in[n];
        const auto put = [&](int row, const Val<u32>& bits) { out(row, n) = bits; };
        put(0, select(group_any(v > 0.96f), 1u, 0u) + select(group_all(v > -0.96f), 2u, 0u));
        put(1, group_count(v > 0.0f));
        put(2, group_ballot(v > 0.0f));
        put(3, bitcast<u32>(group_shuffle(v, (lane * 5 + 3) % kLanes)));
        put(4, bitcast<u32>(group_scan_sum(v)));
        put(5, bitcast<u32>(group_scan(v, [](const Val<f32>& a, const Val<f32>& b) { return max(a, b); })));
        put(6,
            bitcast<u32>(group_reduce(v + 1.5f, [](const Val<f32>& a, const Val<f32>& b) { return a * b; })));
        put(7, group_shuffle(group_scan_sum(cast<u32>(v > 0.0f)), kLanes - 1));
      },
      {.group = {kLanes}});
  Mapping<f32, u32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed); };
  m.outputs = [](int64_t n) { return n * kResults; };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    if (count > 0) device.launch(k, {count / kLanes}, in, out.reshape({kResults, count}));
  };
  m.reference = [](const std::vector<f32>& in) {
    const size_t count = in.size();
    std::vector<u32> out(count * kResults);
    for (size_t first = 0; first < count; first += kLanes) {
      const f32* v = &in[first];
      std::vector<f32> sum(v, v + kLanes), product(kLanes), most = sum;
      for (int l = 0; l < kLanes; ++l) product[size_t(l)] = v[l] + 1.5f;  // far from subnormal products
      for (int d = 1; d < kLanes; d *= 2)
        for (int l = kLanes - 1; l >= d; --l) sum[size_t(l)] = sum[size_t(l - d)] + sum[size_t(l)];
      for (int l = 1; l < kLanes; ++l) most[size_t(l)] = std::max(most[size_t(l)], most[size_t(l - 1)]);
      for (int s = kLanes / 2; s > 0; s /= 2)
        for (int l = 0; l < s; ++l) product[size_t(l)] = product[size_t(l)] * product[size_t(l + s)];
      const auto positive = [](f32 x) { return x > 0; };
      const u32 some = std::any_of(v, v + kLanes, [](f32 x) { return x > 0.96f; });
      const u32 all = std::all_of(v, v + kLanes, [](f32 x) { return x > -0.96f; });
      const u32 number = u32(std::count_if(v, v + kLanes, positive));
      for (int l = 0; l < kLanes; ++l) {
        u32 ballot = 0;
        for (int b = 0; b < 32; ++b) ballot |= u32(positive(v[l / 32 * 32 + b])) << b;
        const u32 results[kResults] = {some + 2 * all,
                                       number,
                                       ballot,
                                       std::bit_cast<u32>(v[(l * 5 + 3) % kLanes]),
                                       std::bit_cast<u32>(sum[size_t(l)]),
                                       std::bit_cast<u32>(most[size_t(l)]),
                                       std::bit_cast<u32>(product[0]),
                                       number};
        for (size_t r = 0; r < kResults; ++r) out[r * count + first + size_t(l)] = results[r];
      }
    }
    return out;
  };
  return mapping_case("engine.group_words", {k}, {"0", "64", "6400"}, m);
}

}  // namespace

void add_word_cases(CaseRegistry& registry) {
  registry.add(rules_case());
  registry.add(elements_case());
  registry.add(wide_atomics_case());
  registry.add(element_atomics_case());
  registry.add(float_add_case());
  registry.add(group_words_case());
}

}  // namespace lockstep::cases
