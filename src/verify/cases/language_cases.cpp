#include <algorithm>
#include <cmath>

#include "lockstep/kernel/function.hpp"
#include "verify/cases/engine_cases.hpp"
#include "verify/mapping.hpp"

namespace lockstep::cases {

namespace {

/// Divergent loops, break, continue, early return, nested ifs.
Case control_case() {
  static const Kernel k = kernel("engine.control", [](At<1> at, Grid<u32, 1> in, Out<u32, 1> out) {
    const Val<u32> first = in[at] % 1000u;
    return_if(first == 13u);
    Var<u32> n = first, steps = 0u, sum = 0u;
    while_([&] { return n > 1u; },
           [&] {
             if_((n & 1u) == 0u, [&] { n = n >> 1u; }, [&] { n = n * 3u + 1u; });
             steps += 1u;
             break_if(steps > 90u);
           });
    for_(0, cast<i32>(first & 31u), [&](Val<i32> i) {
      continue_if(i % 3 == 1);
      for_(i, 0, -2, [&](Val<i32> j) {
        break_if(j % 7 == 5);
        sum += cast<u32>(j * i);
      });
      return_if(sum > 3000u);
    });
    out[at] = steps * 65536u + sum;
  });
  Mapping<u32, u32> m;
  m.input = words;
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {count}, in, out);
  };
  m.reference = [](const std::vector<u32>& in) {
    std::vector<u32> out(in.size(), 0);
    for (size_t p = 0; p < in.size(); ++p) {
      const u32 first = in[p] % 1000;
      if (first == 13) continue;
      u32 n = first, steps = 0, sum = 0;
      while (n > 1) {
        n = n & 1 ? n * 3 + 1 : n >> 1;
        if (++steps > 90) break;
      }
      bool left = false;
      for (int i = 0; i < int(first & 31) && !left; ++i) {
        if (i % 3 == 1) continue;
        for (int j = i; j > 0; j -= 2) {
          if (j % 7 == 5) break;
          sum += u32(j * i);
        }
        left = sum > 3000;
      }
      if (!left) out[p] = steps * 65536 + sum;
    }
    return out;
  };
  return mapping_case("engine.control", {k}, {"0", "1", "33", "1000", "65537"}, m);
}

/// Calls of functions: with a loop, of vectors, in divergent flow, of each other. Compared with closed forms.
Case function_case() {
  static const auto cube_root = function("cube_root", [](Val<f32> x) {  // by Newton's method
    Var<f32> r = fma(x, 0.25f, 0.75f);
    for_(0, 20, [&](Val<i32>) {
      const Val<f32> step = (r * r * r - x) / (3.0f * r * r);
      r -= step;
      break_if(abs(step) <= 0x1p-23f * r);
    });
    return Val<f32>(r);
  });
  static const auto turn = function("turn", [](const Vec2<f32>& v, Val<f32> t) {  // by 2 atan(t)
    const Val<f32> d = 1.0f + t * t, c = (1.0f - t * t) / d, s = 2.0f * t / d;
    return Vec2<f32>(c * v.x() - s * v.y(), s * v.x() + c * v.y());
  });
  static const auto turn_by_root = function("turn_by_root", [](const Vec2<f32>& v, Val<f32> x) {
    return turn(turn(v, cube_root(x)), cube_root(x + 2.0f));
  });
  static const Kernel k = kernel("engine.functions", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
    const Val<f32> x = in[at];
    VarVec<f32, 2> v = turn(Vec2<f32>(cube_root(x), cube_root(x + 1.0f)), 0.25f);
    if_(x > 4.0f, [&] { v = turn(v, cube_root(0.5f * x)); }, [&] { v = turn_by_root(v, x); });
    out[at] = 8.0f + v[0];
  });
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed, 0.1, 30); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {count}, in, out);
  };
  m.reference = [](const std::vector<f32>& in) {
    std::vector<f32> out;
    for (const double x : in) {
      double turned = 2 * std::atan(0.25);
      turned += x > 4 ? 2 * std::atan(std::cbrt(x / 2))
                      : 2 * std::atan(std::cbrt(x)) + 2 * std::atan(std::cbrt(x + 2));
      out.push_back(f32(8 + std::cos(turned) * std::cbrt(x) - std::sin(turned) * std::cbrt(x + 1)));
    }
    return out;
  };
  Case c = mapping_case("engine.functions", {k}, {"0", "1", "33", "1000", "65537"}, m);
  c.reference = c.webgpu = Bound::relative(2e-6);
  return c;
}

/// Sixteen numbers of a lane sorted in a local array by run-time indices, fours of them before in a function's own.
Case local_array_case() {
  static constexpr int kCount = 16;
  static const auto insert = [](const LocalArray<f32>& a, const Val<i32>& count, const Val<f32>& v) {
    Var<i32> j = count;
    while_([&] { return j > 0; },
           [&] {
             const Val<f32> before = a[j - 1];
             break_if(before <= v);
             a[j] = before;
             j -= 1;
           });
    a[j] = v;
  };
  static const auto sorted = function("sorted", [](const Vec4<f32>& v) {
    LocalArray<f32> a(4);
    for (int k = 0; k < 4; ++k) insert(a, k, v[k]);
    return Vec4<f32>(a[0], a[1], a[2], a[3]);
  });
  static const Kernel k = kernel("engine.local_array", [](At<1> at, Grid<f32, 1> in, InOut<f32, 1> out) {
    LocalArray<f32> a(kCount);
    const Val<i32> base = at.x * kCount;
    for_(0, kCount, 4, [&](Val<i32> i) {
      const Vec4<f32> v =
          sorted(Vec4<f32>(in[base + i], in[base + i + 1], in[base + i + 2], in[base + i + 3]));
      for (int n = 0; n < 4; ++n) insert(a, i + n, v[n]);
    });
    for_(0, kCount, [&](Val<i32> i) { out(base + i) = Val<f32>(a[i]); });
  });
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {count / kCount}, in, out);
  };
  m.reference = [](const std::vector<f32>& in) {
    std::vector<f32> out = in;
    for (size_t n = 0; n + kCount <= out.size(); n += kCount)
      std::sort(out.begin() + n, out.begin() + n + kCount);
    return out;
  };
  return mapping_case("engine.local_array", {k}, {"16", "528", "16000"}, m);
}

constexpr int kGroup = 128;

/// Inclusive sums within groups: shared memory, barriers inside a uniform loop.
Case shared_scan_case() {
  static const Kernel k =
      kernel("engine.shared_scan",
             [](Group<1> g, Grid<u32, 1> in, Out<u32, 1> out) {
               SharedArray<u32> s(2 * kGroup);
               const Val<i32> n = g.global(), lane = g.lane(), size = in.size(0);
               Var<i32> from = 0;
               s[lane] = select(n < size, in[min(n, size - 1)], 0u);
               barrier();
               Var<i32> reach = 1;
               while_([&] { return reach < kGroup; },
                      [&] {
                        const Val<i32> other = kGroup - from;
                        s[other + lane] = Val<u32>(s[from + lane]) +
                                          select(lane >= reach, Val<u32>(s[from + max(lane - reach, 0)]), 0u);
                        from = other;
                        reach = reach * 2;
                        barrier();
                      });
               if_(n < size, [&] { out[n] = Val<u32>(s[from + lane]); });
             },
             {.group = {kGroup}});
  Mapping<u32, u32> m;
  m.input = words;
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {(count + kGroup - 1) / kGroup}, in, out);
  };
  m.reference = [](const std::vector<u32>& in) {
    std::vector<u32> out(in.size());
    for (size_t n = 0; n < in.size(); ++n) out[n] = in[n] + (n % kGroup ? out[n - 1] : 0);
    return out;
  };
  return mapping_case("engine.shared_scan", {k}, {"1", "127", "128", "5000"}, m);
}

/// The fixed tree over a group, for sums of floats, minima and maxima.
Case group_reduce_case() {
  static const Kernel k = kernel("engine.group_reduce",
                                 [](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out) {
                                   const Val<i32> n = g.global(), size = in.size(0);
                                   const Val<f32> v = select(n < size, in[min(n, size - 1)], 0.0f);
                                   const Val<f32> sum = group_sum(v), low = group_min(v), high = group_max(v);
                                   if_(g.lane() == 0, [&] {
                                     out[g.id() * 3] = sum;
                                     out[g.id() * 3 + 1] = low;
                                     out[g.id() * 3 + 2] = high;
                                   });
                                 },
                                 {.group = {kGroup}});
  const auto groups = [](int64_t count) { return (count + kGroup - 1) / kGroup; };
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed); };
  m.outputs = [=](int64_t count) { return 3 * groups(count); };
  m.launch = [=](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {groups(count)}, in, out);
  };
  m.reference = [=](const std::vector<f32>& in) {
    std::vector<f32> out;
    for (int64_t g = 0; g < groups(int64_t(in.size())); ++g) {
      std::vector<f32> v(kGroup, 0.0f);
      for (size_t n = 0; n < kGroup && g * kGroup + n < in.size(); ++n) v[n] = in[g * kGroup + n];
      const auto [low, high] = std::minmax_element(v.begin(), v.end());
      const f32 least = *low, most = *high;
      for (int s = kGroup / 2; s; s /= 2)
        for (int n = 0; n < s; ++n) v[n] += v[n + s];
      out.insert(out.end(), {v[0], least, most});
    }
    return out;
  };
  Case c = mapping_case("engine.group_reduce", {k}, {"1", "128", "1000", "70001"}, m);
  c.webgpu = Bound::absolute(1e-4);
  return c;
}

/// Four values an access.
Case wide_case() {
  static const Kernel k = kernel("engine.wide", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
    const Val<i32> base = at.x * 4;
    const auto v = in.wide<4>(base);
    out.store_wide(Wide<f32, 4>{{v[3] + 1.0f, v[2] * 2.0f, v[1] - v[0], v[0]}}, base);
  });
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {count / 4}, in, out);
  };
  m.reference = [](const std::vector<f32>& in) {
    std::vector<f32> out(in.size(), 0.0f);
    for (size_t n = 0; n + 4 <= in.size(); n += 4)
      out[n] = in[n + 3] + 1, out[n + 1] = in[n + 2] * 2, out[n + 2] = in[n + 1] - in[n], out[n + 3] = in[n];
    return out;
  };
  return mapping_case("engine.wide", {k}, {"0", "4", "68", "100004"}, m);
}

/// Neighbour sums over tiles brought in by asynchronous copies, one tile ahead.
Case async_case() {
  static constexpr int kTiles = 8;
  static const Kernel k = kernel(
      "engine.async",
      [](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out) {
        SharedArray<f32> s(2 * kGroup);
        const Val<i32> lane = g.lane(), first = g.id() * (kTiles * kGroup);
        const auto fetch = [&](const Val<i32>& tile, const Val<i32>& slot) {
          in.copy_async(s, slot * kGroup + lane, first + tile * kGroup + lane);
          async_commit();
        };
        fetch(0, 0);
        for_(0, kTiles, [&](Val<i32> tile) {
          if_(tile + 1 < kTiles, [&] { fetch(tile + 1, (tile + 1) & 1); }, [&] { async_commit(); });
          async_wait(1);
          barrier();
          const Val<i32> base = (tile & 1) * kGroup;
          out[first + tile * kGroup + lane] = Val<f32>(s[base + lane]) + Val<f32>(s[base + (lane ^ 1)]);
          barrier();
        });
      },
      {.group = {kGroup}});
  Mapping<f32, f32> m;
  m.input = [](int64_t count, uint64_t seed) { return uniform<f32>(count, seed); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {count / (kTiles * kGroup)}, in, out);
  };
  m.reference = [](const std::vector<f32>& in) {
    std::vector<f32> out(in.size());
    for (size_t n = 0; n < in.size(); ++n) out[n] = in[n] + in[n ^ 1];
    return out;
  };
  return mapping_case("engine.async", {k}, {"0", "1024", "31744"}, m);
}

/// Integer atomics whose result no order can change.
Case atomics_case() {
  static constexpr int kBins = 64;
  static const Kernel k = kernel("engine.atomics", [](At<1> at, Grid<u32, 1> in, InOut<u32, 1> out) {
    const Val<u32> v = in[at];
    const Val<i32> bin = cast<i32>(v & u32(kBins - 1));
    out.atomic_add(bin, 1u);
    out.atomic_max(bin + kBins, v);
    out.atomic_or(bin + 2 * kBins, v >> 7u);
  });
  Mapping<u32, u32> m;
  m.input = words;
  m.outputs = [](int64_t) { return int64_t(3 * kBins); };
  m.launch = [](const Device& device, int64_t count, const Buffer& in, const Buffer& out) {
    device.launch(k, {count}, in, out);
  };
  m.reference = [](const std::vector<u32>& in) {
    std::vector<u32> out(3 * kBins, 0);
    for (u32 v : in) {
      const size_t bin = v & (kBins - 1);
      ++out[bin];
      out[bin + kBins] = std::max(out[bin + kBins], v);
      out[bin + 2 * kBins] |= v >> 7;
    }
    return out;
  };
  return mapping_case("engine.atomics", {k}, {"0", "1", "1000", "100003"}, m);
}

}  // namespace

void add_language_cases(CaseRegistry& registry) {
  registry.add(control_case());
  registry.add(function_case());
  registry.add(local_array_case());
  registry.add(shared_scan_case());
  registry.add(group_reduce_case());
  registry.add(wide_case());
  registry.add(async_case());
  registry.add(atomics_case());
  add_word_cases(registry);
}

}  // namespace lockstep::cases
