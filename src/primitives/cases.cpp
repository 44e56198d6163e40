// Cases of the primitives. The reference is src/primitives/reference.hpp: bit for bit on every device but
// WebGPU.
#include "primitives/fft/cases.hpp"

#include <numeric>

#include "lockstep/primitives.hpp"
#include "lockstep/verify.hpp"
#include "primitives/kernels.hpp"
#include "primitives/products/cases.hpp"
#include "primitives/reference.hpp"
#include "primitives/sort/cases.hpp"
#include "primitives/sort/emission.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

namespace prim = primitives;
using prim::Chunk;

template <class T>
using Data = std::shared_ptr<const std::vector<T>>;

template <class T>
Data<T> random_data(int64_t count, uint64_t seed) {
  auto data = std::make_shared<std::vector<T>>(size_t(count));
  cases::Random random(seed);
  for (T& v : *data) {
    if constexpr (std::is_floating_point_v<T>)
      v = T(random.uniform(-1, 1));
    else
      v = T(random.u32());
  }
  return data;
}

template <class T>
Case base_case(const std::string& operation) {
  Case c;
  c.dtype = std::string(name(detail::kType<T>));
  c.name = "primitives." + operation + (std::is_same_v<T, f32> ? "" : "." + c.dtype);
  c.needs_f64 = sizeof(T) == 8;
  c.small = {"0", "1", "17", "1023", "4096", "8193", "100003"};
  c.full = {"1000003", "16777217"};
  c.bench = {"1048576", "67108864", "268435456"};
  if (std::is_floating_point_v<T>) c.webgpu = Bound::relative(sizeof(T) == 4 ? 1e-6 : 1e-14);
  return c;
}

/// The problem of a case with one result: `work` on buffers made from host data, `reference` on the host data.
template <class T, class R>
CaseProblem problem(std::vector<Data<T>> in, Shape result,
                    std::function<void(const Device&, const std::vector<Buffer>&, const Buffer&)> work,
                    std::function<std::vector<R>()> reference) {
  CaseProblem p;
  p.reference = [=] { return std::vector{Array::of(reference(), result)}; };
  p.bind = [=](const Device& device) {
    std::vector<Buffer> buffers;
    for (const auto& data : in) buffers.push_back(device.upload(*data));
    const Buffer to = device.allocate<R>(result);
    return CaseRun{[=] { work(device, buffers, to); }, [=] { return std::vector{device.download(to)}; }};
  };
  return p;
}

template <class T>
Case fill_case() {
  Case c = base_case<T>("fill");
  c.kernels = [] { return std::vector{prim::fill_kernel<T>()}; };
  c.make = [](const std::string& size, uint64_t) {
    const int64_t n = parse_shape(size, 1)[0];
    auto p = problem<T, T>(
        {}, {n}, [](const Device& d, const auto&, const Buffer& to) { prim::fill(d, to, 2.5); },
        [=] { return std::vector<T>(size_t(n), T(2.5)); });
    p.bytes = double(sizeof(T)) * double(n);
    return p;
  };
  return c;
}

template <class T>
Case update_case(bool both) {
  Case c = base_case<T>(both ? "axpby" : "axpy");
  c.kernels = [=] { return std::vector{both ? prim::axpby_kernel<T>() : prim::axpy_kernel<T>()}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    const auto x = random_data<T>(n, seed), y = random_data<T>(n, seed + 1);
    CaseProblem p;
    p.bytes = 3.0 * double(sizeof(T)) * double(n);
    p.flops = (both ? 3.0 : 2.0) * double(n);
    p.reference = [=] {
      std::vector<T> r(*y);
      for (size_t i = 0; i < r.size(); ++i) r[i] = std::fma(T(0.75), (*x)[i], both ? T(-0.5) * r[i] : r[i]);
      return std::vector{Array::of(r)};
    };
    p.bind = [=](const Device& device) {
      const Buffer bx = device.upload(*x), by = device.upload(*y);
      const auto run = [=] {
        if (both)
          prim::axpby(device, 0.75, bx, -0.5, by);
        else
          prim::axpy(device, 0.75, bx, by);
      };
      // Repeated runs change y in place; the result is that of one run on fresh data.
      return CaseRun{run, [=] {
                       device.write(by, y->data(), by.bytes());
                       run();
                       return std::vector{device.download(by)};
                     }};
    };
    return p;
  };
  return c;
}

template <class T>
Case transpose_case() {
  Case c = base_case<T>("transpose");
  c.small = {"1x1", "1x37", "37x1", "32x32", "33x65", "100x257"};
  c.full = {"1000x3001"};
  c.bench = {"1024x1024", "8192x8192", "16384x16384"};
  c.webgpu = Bound::exact();
  c.kernels = [] { return std::vector{prim::transpose_kernel<T>()}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 2), mirrored{shape[1], shape[0]};
    const auto x = random_data<T>(shape.elements(), seed);
    auto p = problem<T, T>(
        {x}, mirrored,
        [=](const Device& d, const std::vector<Buffer>& in, const Buffer& to) {
          prim::transpose(d, in[0].reshape(shape), to);
        },
        [=] {
          std::vector<T> r(x->size());
          for (int64_t i = 0; i < shape[0]; ++i)
            for (int64_t j = 0; j < shape[1]; ++j)
              r[size_t(j * shape[0] + i)] = (*x)[size_t(i * shape[1] + j)];
          return r;
        });
    p.bytes = 2.0 * double(sizeof(T)) * double(shape.elements());
    return p;
  };
  return c;
}

template <class T>
Case reduce_case(const std::string& operation, Chunk how, bool root = false) {
  Case c = base_case<T>(operation);
  if (how == Chunk::min || how == Chunk::max) c.webgpu = Bound::exact();
  c.kernels = [=] {
    std::vector<Kernel> all{prim::reduce_kernel<T>(how, true), prim::reduce_kernel<T>(how, false)};
    if constexpr (std::is_floating_point_v<T>)
      if (root) all.push_back(prim::root_kernel<T>());
    return all;
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    const auto x = random_data<T>(n, seed), y = how == Chunk::dot && !root ? random_data<T>(n, seed + 1) : x;
    auto p = problem<T, T>(
        {x, y}, {1},
        [=](const Device& d, const std::vector<Buffer>& in, const Buffer& to) {
          if (root)
            prim::norm(d, in[0], to);
          else if (how == Chunk::dot)
            prim::dot(d, in[0], in[1], to);
          else
            prim::reduce(d, prim::Reduce(int(how)), in[0], to);
        },
        [=] {
          T r = prim::reference::reduce<T>(how, *x, *y);
          if constexpr (std::is_floating_point_v<T>)
            if (root) r = std::sqrt(r);
          return std::vector<T>{r};
        });
    p.bytes = (how == Chunk::dot && !root ? 2.0 : 1.0) * double(sizeof(T)) * double(n);
    p.flops = (how == Chunk::dot ? 2.0 : 1.0) * double(n);
    return p;
  };
  return c;
}

/// The same as a replay of a recorded graph: one submission, regardless of the number of launches.
Case recorded(Case c) {
  c.name += ".recorded";
  c.make = [plain = c.make](const std::string& size, uint64_t seed) {
    CaseProblem p = plain(size, seed);
    p.bind = [bind = p.bind](const Device& device) {
      CaseRun run = bind(device);
      run.run = [device, graph = device.record(run.run)] { device.replay(graph); };
      return run;
    };
    return p;
  };
  return c;
}

/// Heads of segments of varied length, some spanning many chunks.
Data<u32> random_heads(int64_t count, uint64_t seed) {
  auto heads = std::make_shared<std::vector<u32>>(size_t(count));
  cases::Random random(seed);
  for (size_t at = 0; at < heads->size();) {
    (*heads)[at] = 1;
    at += 1 + size_t(std::exp(random.uniform(0, 10)));
  }
  return heads;
}

template <class T>
Case scan_case(const std::string& operation, bool exclusive, bool segmented) {
  Case c = base_case<T>(operation);
  if (std::is_floating_point_v<T>) c.webgpu = Bound::relative(sizeof(T) == 4 ? 1e-5 : 1e-13);
  c.kernels = [=] {
    return std::vector{
        prim::scan_sums_kernel<T>(segmented, true), prim::scan_sums_kernel<T>(segmented, false),
        prim::scan_kernel<T>(exclusive, segmented, true), prim::scan_kernel<T>(exclusive, segmented, false)};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    const auto x = random_data<T>(n, seed);
    const Data<u32> heads = segmented ? random_heads(n, seed + 1) : std::make_shared<std::vector<u32>>();
    CaseProblem p;
    p.bytes = (2.0 * double(sizeof(T)) + (segmented ? 4.0 : 0.0)) * double(n);
    p.flops = double(n);
    p.reference = [=] { return std::vector{Array::of(prim::reference::scan<T>(*x, *heads, exclusive))}; };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(*x), marks = device.upload(*heads), to = device.allocate<T>({n});
      return CaseRun{[=] {
                       if (segmented)
                         prim::segmented_scan(device, from, marks, to);
                       else if (exclusive)
                         prim::exclusive_scan(device, from, to);
                       else
                         prim::inclusive_scan(device, from, to);
                     },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return p;
  };
  return c;
}

/// Rows with 0 to 12 entries, now and then with many, and columns all over.
template <class T>
Case gather_case(bool weighted) {
  Case c = base_case<T>(weighted ? "gather_rows.weighted" : "gather_rows");
  c.small = {"0x1", "1x1", "37x1", "211x2", "1000x3", "300x4", "257x7", "65x33"};
  c.full = {"100003x1"};
  c.bench = {"1048576x1", "4194304x3"};
  c.kernels = [=] {
    return std::vector{prim::gather_rows_kernel<T>(weighted, prim::gather_components(1)),
                       prim::gather_rows_kernel<T>(weighted, prim::gather_components(3)),
                       prim::gather_rows_kernel<T>(weighted, prim::gather_components(3), true),
                       prim::gather_rows_kernel<T>(weighted, prim::gather_components(100))};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 2);
    const int64_t count = shape[0], sources = count + 3;
    cases::Random random(seed);
    auto first = std::make_shared<std::vector<i32>>(size_t(count) + 1);
    for (size_t r = 0; r < size_t(count); ++r)
      (*first)[r + 1] = (*first)[r] + i32(random.u32() % 1000 == 0 ? random.u32() % 300 : random.u32() % 13);
    const auto entries = size_t(first->back());
    auto columns = std::make_shared<std::vector<i32>>(entries);
    for (i32& column : *columns) column = i32(random.bits() % uint64_t(sources));
    const auto weights = random_data<T>(int64_t(entries), seed + 1);
    const auto x = random_data<T>(sources * shape[1], seed + 2);
    CaseProblem p;
    p.bytes = double(sizeof(T)) * double(shape[1]) * double(count + sources) +
              double(entries) * (4.0 + (weighted ? sizeof(T) : 0.0)) + 4.0 * double(count);
    p.flops = (weighted ? 2.0 : 1.0) * double(entries) * double(shape[1]);
    p.reference = [=] {
      std::vector<T> y(size_t(shape.elements()));
      const auto width = size_t(shape[1]);
      for (size_t r = 0; r < size_t(count); ++r)
        for (size_t k = 0; k < width; ++k) {
          T sum = 0;
          for (auto e = size_t((*first)[r]); e < size_t((*first)[r + 1]); ++e) {
            const T v = (*x)[size_t((*columns)[e]) * width + k];
            sum = weighted ? std::fma((*weights)[e], v, sum) : sum + v;
          }
          y[r * width + k] = sum;
        }
      return std::vector{Array::of(y, shape)};
    };
    p.bind = [=](const Device& device) {
      const prim::Rows rows{device.upload(*first), device.upload(*columns),
                            weighted ? device.upload(*weights) : Buffer()};
      const Buffer from = device.upload(std::span<const T>(*x), {sources, shape[1]}),
                   to = device.allocate<T>(shape);
      return CaseRun{[=] { prim::gather_rows(device, rows, from, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return p;
  };
  return c;
}

/// Segments of 0 to 12 elements, now and then long ones, and one of half of all elements.
std::shared_ptr<const std::vector<i32>> random_segments(int64_t count, uint64_t seed) {
  auto first = std::make_shared<std::vector<i32>>(1, 0);
  cases::Random random(seed);
  while (first->back() < count) {
    const uint32_t kind = random.u32() % 256, length = random.u32();
    const int64_t own = first->size() == 7 ? count / 2
                                           : length % (kind == 0  ? 20000u
                                                       : kind < 8 ? 300u
                                                                  : 13u);
    first->push_back(i32(std::min(first->back() + own, count)));
  }
  return first;
}

template <class T>
Case segments_case(const std::string& operation, Chunk how) {
  Case c = base_case<T>("segmented_reduce." + operation);
  if (how != Chunk::sum) c.webgpu = Bound::exact();
  c.kernels = [=] {
    std::vector<Kernel> all{prim::short_segments_kernel<T>(how), prim::segment_chunks_kernel<T>(how),
                            prim::long_segments_kernel<T>(how)};
    for (const int lanes : prim::kEmissionLanes) {
      all.push_back(prim::segment_counts_kernel(lanes));
      all.push_back(prim::segment_list_kernel(lanes));
    }
    return all;
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    const auto x = random_data<T>(n, seed);
    const auto first = random_segments(n, seed + 1);
    const auto rows = int64_t(first->size()) - 1;
    CaseProblem p;
    p.bytes = double(sizeof(T)) * double(n + rows) + 4.0 * double(rows);
    p.flops = double(n);
    p.reference = [=] {
      std::vector<T> result;
      for (size_t r = 0; r + 1 < first->size(); ++r)
        result.push_back(prim::reference::reduce<T>(
            how, std::span(*x).subspan(size_t((*first)[r]), size_t((*first)[r + 1] - (*first)[r]))));
      return std::vector{Array::of(result)};
    };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(*x), offsets = device.upload(*first), to = device.allocate<T>({rows});
      return CaseRun{[=] { prim::segmented_reduce(device, prim::Reduce(int(how)), from, offsets, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return p;
  };
  return c;
}

Case histogram_case(const std::string& operation, int64_t bins) {
  Case c = base_case<u32>(operation);
  c.kernels = [=] {
    return std::vector{prim::histogram_kernel<u32>(bins <= 2048 ? 0 : bins <= 8192 ? 1 : 2)};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    auto keys = std::make_shared<std::vector<u32>>(size_t(n));
    cases::Random random(seed);
    for (u32& key : *keys) key = random.u32() % 100 == 0 ? random.u32() : random.u32() % u32(bins);
    auto p = problem<u32, u32>(
        {keys}, {bins},
        [](const Device& d, const std::vector<Buffer>& in, const Buffer& to) {
          prim::histogram(d, in[0], to);
        },
        [=] {
          std::vector<u32> counts(static_cast<size_t>(bins));
          for (const u32 key : *keys)
            if (key < u32(bins)) ++counts[key];
          return counts;
        });
    p.bytes = 4.0 * double(n + bins);
    return p;
  };
  return c;
}

template <class T>
Case bins_case() {
  Case c = base_case<T>("histogram.range");
  c.webgpu = Bound::exact();
  c.kernels = [] {
    return std::vector{prim::bins_kernel<T>(0), prim::bins_kernel<T>(1), prim::bins_kernel<T>(2)};
  };
  c.make = [](const std::string& size, uint64_t seed) {
    constexpr int kBins = 100;
    const int64_t n = parse_shape(size, 1)[0];
    const auto x = random_data<T>(n, seed);
    auto p = problem<T, u32>(
        {x}, {kBins},
        [](const Device& d, const std::vector<Buffer>& in, const Buffer& to) {
          prim::histogram(d, in[0], -0.75, 1, to);
        },
        [=] {
          std::vector<u32> counts(kBins);
          for (const T v : *x)
            if (v >= T(-0.75) && v <= T(1))
              ++counts[size_t(std::min<T>(std::floor((v - T(-0.75)) * T(kBins / 1.75)), kBins - 1))];
          return counts;
        });
    p.bytes = double(sizeof(T)) * double(n) + 4.0 * kBins;
    return p;
  };
  return c;
}

template <class T>
void add_for_type(CaseRegistry& registry) {
  registry.add(transpose_case<T>());
  registry.add(reduce_case<T>("sum", Chunk::sum));
  if (std::is_same_v<T, f32>) registry.add(recorded(reduce_case<T>("sum", Chunk::sum)));
  registry.add(reduce_case<T>("min", Chunk::min));
  registry.add(reduce_case<T>("max", Chunk::max));
  registry.add(segments_case<T>("sum", Chunk::sum));
  if (std::is_same_v<T, f32>) registry.add(segments_case<T>("min", Chunk::min));
  if (std::is_same_v<T, f32>) registry.add(segments_case<T>("max", Chunk::max));
  registry.add(scan_case<T>("inclusive_scan", false, false));
  registry.add(scan_case<T>("exclusive_scan", true, false));
  registry.add(scan_case<T>("segmented_scan", false, true));
}
template <class T>
void add_for_float(CaseRegistry& registry) {
  registry.add(fill_case<T>());
  registry.add(update_case<T>(false));
  registry.add(update_case<T>(true));
  registry.add(reduce_case<T>("dot", Chunk::dot));
  registry.add(reduce_case<T>("norm", Chunk::dot, true));
  registry.add(gather_case<T>(false));
  registry.add(gather_case<T>(true));
  registry.add(bins_case<T>());
  registry.add(prim::matmul_case<T>(std::nullopt));
  registry.add(prim::matmul_case<T>(prim::Product::tiles));
  registry.add(prim::matmul_case<T>(prim::Product::wide));
  registry.add(prim::matmul_case<T>(prim::Product::slim));
  registry.add(prim::matmul_case<T>(prim::Product::slim_wide));
  if constexpr (std::is_same_v<T, f32>) registry.add(prim::matmul_case<T>(prim::Product::wide_64));
}

}  // namespace

void add_primitive_cases(CaseRegistry& registry) {
  add_for_type<f32>(registry);
  add_for_type<f64>(registry);
  add_for_type<i32>(registry);
  add_for_type<u32>(registry);
  add_for_float<f32>(registry);
  add_for_float<f64>(registry);
  registry.add(histogram_case("histogram", 100));
  registry.add(histogram_case("histogram.large", 5000));
  registry.add(histogram_case("histogram.many", 100000));
  add_sort_cases(registry);
  add_product_cases(registry);
  add_fft_cases(registry);
}

}  // namespace lockstep
