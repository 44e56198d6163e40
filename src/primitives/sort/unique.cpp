// unique: the elements that differ from the one before them.
#include <fmt/format.h>

#include <algorithm>

#include "device/capabilities.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/sort/emission.hpp"
#include "primitives/sort/sort.hpp"

namespace lockstep::primitives {

namespace {

/// 1 where a run of equal bits begins, else 0.
Val<u32> begins(const AnyGrid& x, const Val<i32>& at) {
  const auto bits = [&](const Val<i32>& k) { return x.load({k}).bitcast(Type::u32).as<u32>(); };
  return cast<u32>(at == 0 || bits(at) != bits(max(at - 1, 0)));
}

}  // namespace

Kernel run_counts_kernel(Storage keys, int lanes) {
  static Memo<std::pair<Storage, int>, Kernel> kernels;
  return kernels.get({keys, lanes}, [&] {
    return kernel(
        fmt::format("primitives.unique.counts{}.{}", lanes == 1 ? ".serial" : "", name(keys)),
        [=](Group<1> g, Parameters& p) {
          const AnyGrid x = p.read("keys", keys, 1);
          const auto counts = p.write<u32, 1>("counts");
          Emission(g, x.size(0)).count(counts, g.id(), [&](const Val<i32>& at) { return begins(x, at); });
          if_(g.global() == 0, [&] { counts[g.count()] = 0u; });
        },
        {{lanes, 1, 1}, 0});
  });
}

Kernel runs_kernel(Storage keys, int lanes) {
  static Memo<std::pair<Storage, int>, Kernel> kernels;
  return kernels.get({keys, lanes}, [&] {
    return kernel(fmt::format("primitives.unique.runs{}.{}", lanes == 1 ? ".serial" : "", name(keys)),
                  [=](Group<1> g, Parameters& p) {
                    const AnyGrid x = p.read("keys", keys, 1);
                    const auto starts = p.read<u32, 1>("starts");
                    const AnyGrid distinct = p.write("distinct", keys, 1);
                    const auto first = p.write<i32, 1>("first");
                    Emission(g, x.size(0))
                        .emit(
                            starts, g.id(), [&](const Val<i32>& at) { return begins(x, at); },
                            [&](const Val<i32>& at, const Val<u32>& entries, const Val<i32>& to) {
                              if_(entries != 0u, [&] {
                                distinct.store({to}, x.load({at}));
                                first[to] = at;
                              });
                            });
                    if_(g.global() == 0, [&] { first[first.size(0) - 1] = x.size(0); });
                  },
                  {{lanes, 1, 1}, 0});
  });
}

Unique unique(const Device& device, const Buffer& sorted, const Stream& stream) {
  const auto where = "primitives::unique";
  expect_flat(sorted, where);
  expect_keys(sorted, where);
  const int64_t count = sorted.elements(), chunks = std::max<int64_t>(divide_up(count, kEmissionChunk), 1);
  const int lanes = kEmissionLanes[capabilities_of(device).vectors ? 0 : 1];
  const Buffer x = sorted.reshape({count}), counts = device.allocate<u32>({chunks + 1}),
               starts = device.allocate<u32>({chunks + 1});
  device.launch_on(stream, run_counts_kernel(x.storage(), lanes), {chunks},
                   Arguments().set("keys", x).set("counts", counts));
  exclusive_scan(device, counts, starts, stream);
  Unique u{{}, {}, starts.rows(chunks, 1), 0};
  u32 size = 0;
  device.read(u.count, &size, sizeof size, stream);
  u.size = size;
  u.keys = device.allocate(x.storage(), {u.size});
  u.first = device.allocate<i32>({u.size + 1});
  device.launch_on(
      stream, runs_kernel(x.storage(), lanes), {chunks},
      Arguments().set("keys", x).set("starts", starts).set("distinct", u.keys).set("first", u.first));
  return u;
}

}  // namespace lockstep::primitives
