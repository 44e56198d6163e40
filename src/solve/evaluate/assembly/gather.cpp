#include "solve/evaluate/assembly/gather.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "primitives/sums/host_reduce.hpp"
#include "solve/evaluate/batch_kernels.hpp"

namespace lockstep::solve {

GatherPlan plan_gather(int width, int64_t slots, int64_t blocks, const std::vector<Occurrence>& occurrences) {
  GatherPlan plan;
  plan.width = width, plan.slots = slots;
  if (slots > INT32_MAX || int64_t(occurrences.size()) > INT32_MAX)
    throw InputError(fmt::format("{} local derivatives of one batch", slots), "solve evaluator",
                     fmt::format("at most {}", INT32_MAX));
  std::vector<int32_t> first(size_t(blocks) + 1, 0);
  for (const Occurrence& o : occurrences)
    if (o.block >= 0) ++first[size_t(o.block) + 1];
  for (size_t b = 0; b < size_t(blocks); ++b) first[b + 1] += first[b];
  plan.entries.resize(size_t(first.back()));
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  for (const Occurrence& o : occurrences)
    if (o.block >= 0) plan.entries[size_t(next[size_t(o.block)]++)] = o.entry;

  // Entries of one-lane rows come first, in the order of the rows; those of chunked rows follow.
  std::vector<int32_t> few, many;
  for (int64_t b = 0; b < blocks; ++b) {
    const int32_t count = first[size_t(b) + 1] - first[size_t(b)];
    if (count > 0 && count <= GatherPlan::kFewEntries) plan.few_blocks.push_back(int32_t(b));
    if (count > GatherPlan::kFewEntries) plan.many_blocks.push_back(int32_t(b));
  }
  plan.few_first.push_back(0), plan.many_first.push_back(0);
  for (const int32_t b : plan.few_blocks) {
    few.insert(few.end(), plan.entries.begin() + first[size_t(b)],
               plan.entries.begin() + first[size_t(b) + 1]);
    plan.few_first.push_back(int32_t(few.size()));
  }
  for (const int32_t b : plan.many_blocks) {
    const int32_t begin = int32_t(few.size() + many.size());
    many.insert(many.end(), plan.entries.begin() + first[size_t(b)],
                plan.entries.begin() + first[size_t(b) + 1]);
    const int32_t end = int32_t(few.size() + many.size());
    for (int32_t at = begin; at < end; at += GatherPlan::kChunk) {
      plan.chunk_begin.push_back(at);
      plan.chunk_end.push_back(std::min(end, at + GatherPlan::kChunk));
    }
    plan.many_first.push_back(int32_t(plan.chunk_begin.size()));
  }
  few.insert(few.end(), many.begin(), many.end());
  plan.entries = std::move(few);
  return plan;
}

namespace {

// Components up to which one lane, or one group, sums all of them. Beyond, each has lanes or groups of its
// own, so that kernels do not grow with the width of blocks; trees over groups make long kernels sooner.
constexpr int kMostUnrolled = 48, kMostUnrolledTrees = 6;

/// Key of a kernel of sums.
struct SumKind {
  Storage storage;
  int components;
  bool signs, overwrite, records;
  Type type() const { return value_type(storage); }
  bool by_component(int most_unrolled) const { return components > most_unrolled; }
  Shape lanes(int most_unrolled, size_t rows) const {
    return by_component(most_unrolled) ? Shape{components, int64_t(rows)} : Shape{int64_t(rows)};
  }
  std::string name(const char* sum, int most_unrolled) const {
    return fmt::format("solve.{}.{}.{}{}{}{}", sum, lockstep::name(storage),
                       by_component(most_unrolled) ? "each" : std::to_string(components),
                       signs ? ".signed" : "", overwrite ? ".set" : "", records ? ".records" : "");
  }
};

/// The components that a lane or group sums: `count` from `first` on.
struct Components {
  Val<i32> first;
  int count;
};

/// local[component, entry], negative where the entry is marked (~entry).
AnyVal signed_value(const SumKind& kind, const AnyGrid& local, const Val<i32>& component,
                    const Val<i32>& entry) {
  const Val<bool> marked = entry < 0;
  const Val<i32> plain = select(marked, -1 - entry, entry);
  const AnyVal v = kind.records ? local.load({plain, component}) : local.load({component, plain});
  return kind.signs ? select(marked, -v, v) : v;
}

AnyGrid target_of(const SumKind& kind, Parameters& p) {
  return kind.overwrite ? p.write("target", kind.storage, 1) : p.read_write("target", kind.storage, 1);
}

void trace_few(const SumKind& kind, Parameters& p, const Val<i32>& row, const Components& own) {
  const auto first = p.read<i32, 1>("first"), entries = p.read<i32, 1>("entries"),
             offsets = p.read<i32, 1>("offsets");
  const AnyGrid local = p.read("local", kind.storage, 2), target = target_of(kind, p);
  // Sums continue from what the target holds, so that it does not matter how instances are cut into batches.
  const Val<i32> to = offsets[row] + own.first;
  std::vector<AnyVar> sums;
  for (int c = 0; c < own.count; ++c)
    sums.emplace_back(kind.overwrite ? AnyVal::number(kind.type(), 0) : target.load({to + c}));
  for_(first[row], first[row + 1], [&](Val<i32> at) {
    const Val<i32> entry = entries[at];
    for (int c = 0; c < own.count; ++c) sums[size_t(c)] += signed_value(kind, local, own.first + c, entry);
  });
  for (int c = 0; c < own.count; ++c) target.store({to + c}, sums[size_t(c)]);
}

void trace_chunk(const SumKind& kind, Parameters& p, const Val<i32>& chunk, const Val<i32>& lane,
                 const Components& own) {
  const auto begin = p.read<i32, 1>("begin"), end = p.read<i32, 1>("end"),
             entries = p.read<i32, 1>("entries");
  const AnyGrid local = p.read("local", kind.storage, 2), partial = p.write("partial", kind.storage, 2);
  const Val<i32> at = begin[chunk] + lane;
  std::vector<AnyVar> values;
  for (int c = 0; c < own.count; ++c) values.emplace_back(AnyVal::number(kind.type(), 0));
  if_(at < end[chunk], [&] {
    const Val<i32> entry = entries[at];
    for (int c = 0; c < own.count; ++c) values[size_t(c)] = signed_value(kind, local, own.first + c, entry);
  });
  std::vector<AnyVal> sums;
  for (int c = 0; c < own.count; ++c) sums.push_back(group_sum(values[size_t(c)]));
  if_(lane == 0, [&] {
    for (int c = 0; c < own.count; ++c) partial.store({own.first + c, chunk}, sums[size_t(c)]);
  });
}

void trace_many(const SumKind& kind, Parameters& p, const Val<i32>& row, const Val<i32>& lane,
                const Components& own) {
  const auto first = p.read<i32, 1>("first"), offsets = p.read<i32, 1>("offsets");
  const AnyGrid partial = p.read("partial", kind.storage, 2), target = target_of(kind, p);
  std::vector<AnyVar> sums;
  for (int c = 0; c < own.count; ++c) sums.emplace_back(AnyVal::number(kind.type(), 0));
  for_(first[row] + lane, first[row + 1], GatherPlan::kChunk, [&](Val<i32> chunk) {
    for (int c = 0; c < own.count; ++c) sums[size_t(c)] += partial.load({own.first + c, chunk});
  });
  std::vector<AnyVal> totals;
  for (int c = 0; c < own.count; ++c) totals.push_back(group_sum(sums[size_t(c)]));
  if_(lane == 0, [&] {
    const Val<i32> to = offsets[row] + own.first;
    for (int c = 0; c < own.count; ++c)
      target.store({to + c}, kind.overwrite ? totals[size_t(c)] : target.load({to + c}) + totals[size_t(c)]);
  });
}

Kernel few_kernel(const SumKind& kind) {
  const std::string name = kind.name("gather", kMostUnrolled);
  return cached_kernel(name, [&] {
    if (kind.by_component(kMostUnrolled))
      return kernel(name, [&](At<2> at, Parameters& p) { trace_few(kind, p, at.x, {at.y, 1}); });
    return kernel(name, [&](At<1> at, Parameters& p) { trace_few(kind, p, at.x, {0, kind.components}); });
  });
}

using GroupSum = void(const SumKind&, Parameters&, const Val<i32>&, const Val<i32>&, const Components&);
/// A group a chunk, or a row.
Kernel group_kernel(const std::string& name, const SumKind& kind, GroupSum* trace) {
  const KernelOptions options{{GatherPlan::kChunk, 1, 1}, 0};
  return cached_kernel(name, [&] {
    if (kind.by_component(kMostUnrolledTrees))
      return kernel(
          name, [&](Group<2> g, Parameters& p) { trace(kind, p, g.id(0), g.lane(), {g.id(1), 1}); }, options);
    return kernel(
        name, [&](Group<1> g, Parameters& p) { trace(kind, p, g.id(), g.lane(), {0, kind.components}); },
        options);
  });
}
Kernel chunk_kernel(SumKind kind) {
  kind.overwrite = false;
  return group_kernel(kind.name("gather_chunks", kMostUnrolledTrees), kind, trace_chunk);
}
Kernel many_kernel(SumKind kind) {
  kind.signs = kind.records = false;
  return group_kernel(kind.name("gather_rows", kMostUnrolledTrees), kind, trace_many);
}

Buffer upload(const Device& device, const std::vector<int32_t>& v) {
  return v.empty() ? Buffer() : device.upload(v);
}

}  // namespace

Gather::Gather(const Device& device, const GatherPlan& plan)
    : device_(device),
      plan_(plan),
      entries_(upload(device, plan.entries)),
      few_first_(upload(device, plan.few_first)),
      many_first_(upload(device, plan.many_first)),
      chunk_begin_(upload(device, plan.chunk_begin)),
      chunk_end_(upload(device, plan.chunk_end)) {
  plan_.entries.clear();
  plan_.entries.shrink_to_fit();
}

std::vector<std::function<Kernel()>> Gather::kernels(Storage storage, int components, bool signs,
                                                     bool overwrite, bool records) const {
  const SumKind kind{storage, components, signs, overwrite, records};
  std::vector<std::function<Kernel()>> kernels;
  if (!plan_.few_blocks.empty()) kernels.push_back([=] { return few_kernel(kind); });
  if (plan_.many_blocks.empty()) return kernels;
  kernels.push_back([=] { return chunk_kernel(kind); });
  kernels.push_back([=] { return many_kernel(kind); });
  return kernels;
}

void Gather::add(const Buffer& local, int components, bool signs, const Buffer& few_offsets,
                 const Buffer& many_offsets, const Buffer& target, bool overwrite, bool records) const {
  const SumKind kind{local.storage(), components, signs, overwrite, records};
  if (!plan_.few_blocks.empty())
    device_.launch(few_kernel(kind), kind.lanes(kMostUnrolled, plan_.few_blocks.size()),
                   Arguments()
                       .set("first", few_first_)
                       .set("entries", entries_)
                       .set("offsets", few_offsets)
                       .set("local", local)
                       .set("target", target));
  if (plan_.many_blocks.empty()) return;
  const int64_t chunks = int64_t(plan_.chunk_begin.size());
  if (!partial_ || partial_.storage() != kind.storage || partial_.shape()[0] < components)
    partial_ = device_.allocate(kind.storage, {components, chunks});
  const Buffer partial = partial_.rows(0, components);
  device_.launch(chunk_kernel(kind), kind.lanes(kMostUnrolledTrees, plan_.chunk_begin.size()),
                 Arguments()
                     .set("begin", chunk_begin_)
                     .set("end", chunk_end_)
                     .set("entries", entries_)
                     .set("local", local)
                     .set("partial", partial));
  device_.launch(many_kernel(kind), kind.lanes(kMostUnrolledTrees, plan_.many_blocks.size()),
                 Arguments()
                     .set("first", many_first_)
                     .set("offsets", many_offsets)
                     .set("partial", partial)
                     .set("target", target));
}

namespace {

const int32_t* indices_of(const Buffer& buffer) { return reinterpret_cast<const int32_t*>(buffer.native()); }

/// local[entry], negative where the entry is marked (~entry).
double signed_number(const double* local, int32_t entry, bool signs) {
  const double v = local[entry < 0 ? ~entry : entry];
  return signs && entry < 0 ? -v : v;
}

}  // namespace

void Gather::add_on_host(const double* local, int components, bool signs, const Buffer& few_offsets,
                         const Buffer& many_offsets, double* target) const {
  const int32_t* const entries = indices_of(entries_);
  const int64_t slots = plan_.slots;
  for (size_t row = 0; row < plan_.few_blocks.size(); ++row) {
    double* const to = target + indices_of(few_offsets)[row];
    for (int c = 0; c < components; ++c) {
      double sum = to[c];
      for (int32_t at = plan_.few_first[row]; at < plan_.few_first[row + 1]; ++at)
        sum += signed_number(local + c * slots, entries[at], signs);
      to[c] = sum;
    }
  }
  static_assert(GatherPlan::kChunk == primitives::kSumLanes);
  primitives::HostLanes lanes;
  for (size_t row = 0; row < plan_.many_blocks.size(); ++row) {
    double* const to = target + indices_of(many_offsets)[row];
    for (int c = 0; c < components; ++c) {
      std::vector<double> chunks;
      for (int32_t k = plan_.many_first[row]; k < plan_.many_first[row + 1]; ++k) {
        const int32_t begin = plan_.chunk_begin[size_t(k)], end = plan_.chunk_end[size_t(k)];
        lanes.fill(0);
        for (int32_t at = begin; at < end; ++at)
          lanes[size_t(at - begin)] = signed_number(local + c * slots, entries[at], signs);
        chunks.push_back(primitives::host_group_sum(lanes));
      }
      lanes.fill(0);
      for (size_t k = 0; k < chunks.size(); ++k) lanes[k % lanes.size()] += chunks[k];
      to[c] += primitives::host_group_sum(lanes);
    }
  }
}

}  // namespace lockstep::solve
