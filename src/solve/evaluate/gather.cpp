#include "solve/evaluate/gather.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "solve/evaluate/batch_kernels.hpp"
#include "solve/model/traced_buffer.hpp"

namespace lockstep::solve {

using ir::Id;

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

  // Entries of one-lane rows stand first, in the order of the rows; those of chunked rows follow.
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

struct Place {
  Id entry, negative;
};
/// The entry without its mark, and whether it is marked.
Place unpack(Id entry, bool signs) {
  ir::Builder& b = lockstep::detail::builder();
  const Id marked = b.op(ir::Op::ilt, {entry, b.i32(0)});
  const Id plain = b.select(marked, b.op(ir::Op::isub, {b.i32(-1), entry}), entry);
  return {plain, signs ? marked : ir::kNone};
}
Id signed_value(const TracedBuffer& local, int component, const Place& place, bool records) {
  ir::Builder& b = lockstep::detail::builder();
  const Id v =
      records ? local.load({place.entry, b.i32(component)}) : local.load({b.i32(component), place.entry});
  return place.negative == ir::kNone ? v : b.select(place.negative, b.op(ir::Op::fneg, {v}), v);
}
void put(const TracedBuffer& target, bool overwrite, Id at, Id value) {
  ir::Builder& b = lockstep::detail::builder();
  target.store({at}, overwrite ? value : b.op(ir::Op::fadd, {target.load({at}), value}));
}

// The same sums with a lane, or a group, for each component: kernels whose size does not depend on how many
// there are. They add in the same order.

template <class T>
Val<T> signed_entry(const Grid<T, 2>& local, const Val<i32>& component, const Val<i32>& entry, bool signs) {
  const Val<bool> marked = entry < 0;
  const Val<T> v = local(component, select(marked, -1 - entry, entry));
  return signs ? select(marked, -v, v) : v;
}

template <class T>
Kernel few_by_component(bool signs) {
  const std::string name = fmt::format("solve.gather.{}.by_component{}",
                                       lockstep::name(lockstep::detail::kType<T>), signs ? ".signed" : "");
  return cached_kernel(name, [&] {
    return kernel(name, [signs](At<2> at, Grid<i32, 1> first, Grid<i32, 1> entries, Grid<i32, 1> offsets,
                                Grid<T, 2> local, InOut<T, 1> target) {
      const Val<i32> row = at.x, component = at.y, to = offsets[row] + component;
      Var<T> sum = Val<T>(target[to]);
      for_(first[row], first[row + 1],
           [&](Val<i32> k) { sum = sum + signed_entry<T>(local, component, entries[k], signs); });
      target[to] = sum;
    });
  });
}
template <class T>
Kernel chunk_by_component(bool signs) {
  const std::string name = fmt::format("solve.gather_chunks.{}.by_component{}",
                                       lockstep::name(lockstep::detail::kType<T>), signs ? ".signed" : "");
  return cached_kernel(name, [&] {
    return kernel(name,
                  [signs](Group<2> g, Grid<i32, 1> begin, Grid<i32, 1> end, Grid<i32, 1> entries,
                          Grid<T, 2> local, Out<T, 2> partial) {
                    const Val<i32> chunk = g.id(0), component = g.id(1), at = begin[chunk] + g.lane();
                    Var<T> value = T(0);
                    if_(at < end[chunk],
                        [&] { value = signed_entry<T>(local, component, entries[at], signs); });
                    const Val<T> sum = group_sum(Val<T>(value));
                    if_(g.lane() == 0, [&] { partial(component, chunk) = sum; });
                  },
                  {{GatherPlan::kChunk, 1, 1}, 0});
  });
}
template <class T>
Kernel many_by_component() {
  const std::string name =
      fmt::format("solve.gather_rows.{}.by_component", lockstep::name(lockstep::detail::kType<T>));
  return cached_kernel(name, [&] {
    return kernel(
        name,
        [](Group<2> g, Grid<i32, 1> first, Grid<i32, 1> offsets, Grid<T, 2> partial, InOut<T, 1> target) {
          const Val<i32> row = g.id(0), component = g.id(1);
          Var<T> sum = T(0);
          for_(first[row] + g.lane(), first[row + 1], GatherPlan::kChunk,
               [&](Val<i32> chunk) { sum = sum + partial(component, chunk); });
          const Val<T> total = group_sum(Val<T>(sum));
          if_(g.lane() == 0, [&] {
            const Val<i32> to = offsets[row] + component;
            target[to] = target[to] + total;
          });
        },
        {{GatherPlan::kChunk, 1, 1}, 0});
  });
}

Kernel few_kernel(Storage storage, int components, bool signs, bool overwrite, bool records) {
  const std::string name =
      fmt::format("solve.gather.{}.{}{}{}{}", lockstep::name(storage), components, signs ? ".signed" : "",
                  overwrite ? ".set" : "", records ? ".records" : "");
  return cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::points, 1, {}, [=](ir::Builder& b) {
      const TracedBuffer first("first", Storage::i32, 1, ir::Access::read),
          entries("entries", Storage::i32, 1, ir::Access::read),
          offsets("offsets", Storage::i32, 1, ir::Access::read), local("local", storage, 2, ir::Access::read),
          target("target", storage, 1, overwrite ? ir::Access::write : ir::Access::read_write);
      const Id row = b.emit(ir::Op::coord, Type::i32, {}, 0);
      // Sums go on from what the target holds, so that it does not matter how instances are cut into batches.
      const Id to = offsets.load({row});
      const auto place = [&](int c) { return b.op(ir::Op::iadd, {to, b.i32(c)}); };
      std::vector<Id> sums;
      for (int c = 0; c < components; ++c)
        sums.push_back(b.variable(overwrite ? b.number(value_type(storage), 0) : target.load({place(c)})));
      b.for_(first.load({row}), first.load({b.op(ir::Op::iadd, {row, b.i32(1)})}), 1, [&](Id at) {
        const Place entry = unpack(entries.load({at}), signs);
        for (int c = 0; c < components; ++c)
          b.set(sums[size_t(c)],
                b.op(ir::Op::fadd, {b.get(sums[size_t(c)]), signed_value(local, c, entry, records)}));
      });
      for (int c = 0; c < components; ++c) target.store({place(c)}, b.get(sums[size_t(c)]));
    });
  });
}

// A group a chunk.
Kernel chunk_kernel(Storage storage, int components, bool signs, bool records) {
  const std::string name = fmt::format("solve.gather_chunks.{}.{}{}{}", lockstep::name(storage), components,
                                       signs ? ".signed" : "", records ? ".records" : "");
  KernelOptions options;
  options.group = {GatherPlan::kChunk, 1, 1};
  return cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::groups, 1, options, [=](ir::Builder& b) {
      const TracedBuffer begin("begin", Storage::i32, 1, ir::Access::read),
          end("end", Storage::i32, 1, ir::Access::read),
          entries("entries", Storage::i32, 1, ir::Access::read), local("local", storage, 2, ir::Access::read),
          partial("partial", storage, 2, ir::Access::write);
      const Group<1> g;
      const Id chunk = g.id().id(), at = b.op(ir::Op::iadd, {begin.load({chunk}), g.lane().id()});
      const Id zero = b.number(value_type(storage), 0);
      std::vector<Id> values;
      for (int c = 0; c < components; ++c) values.push_back(b.variable(zero));
      b.if_(b.op(ir::Op::ilt, {at, end.load({chunk})}), [&] {
        const Place place = unpack(entries.load({at}), signs);
        for (int c = 0; c < components; ++c) b.set(values[size_t(c)], signed_value(local, c, place, records));
      });
      std::vector<Id> sums;
      for (int c = 0; c < components; ++c)
        sums.push_back(b.emit(ir::Op::group_reduce, value_type(storage), {b.get(values[size_t(c)])},
                              uint64_t(ir::Reduction::add)));
      b.if_(b.op(ir::Op::ieq, {g.lane().id(), b.i32(0)}), [&] {
        for (int c = 0; c < components; ++c) partial.store({b.i32(c), chunk}, sums[size_t(c)]);
      });
    });
  });
}

// A group a row.
Kernel many_kernel(Storage storage, int components, bool overwrite) {
  const std::string name =
      fmt::format("solve.gather_rows.{}.{}{}", lockstep::name(storage), components, overwrite ? ".set" : "");
  KernelOptions options;
  options.group = {GatherPlan::kChunk, 1, 1};
  return cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::groups, 1, options, [=](ir::Builder& b) {
      const TracedBuffer first("first", Storage::i32, 1, ir::Access::read),
          offsets("offsets", Storage::i32, 1, ir::Access::read),
          partial("partial", storage, 2, ir::Access::read),
          target("target", storage, 1, overwrite ? ir::Access::write : ir::Access::read_write);
      const Group<1> g;
      const Id row = g.id().id();
      std::vector<Id> sums;
      for (int c = 0; c < components; ++c) sums.push_back(b.variable(b.number(value_type(storage), 0)));
      const Id begin = b.op(ir::Op::iadd, {first.load({row}), g.lane().id()});
      b.for_(begin, first.load({b.op(ir::Op::iadd, {row, b.i32(1)})}), GatherPlan::kChunk, [&](Id chunk) {
        for (int c = 0; c < components; ++c)
          b.set(sums[size_t(c)],
                b.op(ir::Op::fadd, {b.get(sums[size_t(c)]), partial.load({b.i32(c), chunk})}));
      });
      std::vector<Id> totals;
      for (int c = 0; c < components; ++c)
        totals.push_back(b.emit(ir::Op::group_reduce, value_type(storage), {b.get(sums[size_t(c)])},
                                uint64_t(ir::Reduction::add)));
      b.if_(b.op(ir::Op::ieq, {g.lane().id(), b.i32(0)}), [&] {
        const Id to = offsets.load({row});
        for (int c = 0; c < components; ++c)
          put(target, overwrite, b.op(ir::Op::iadd, {to, b.i32(c)}), totals[size_t(c)]);
      });
    });
  });
}

// Components up to which one lane, or one group, sums all of them; trees make long kernels sooner.
constexpr int kMostUnrolled = 48, kMostUnrolledTrees = 6;

struct SumKind {
  Storage storage;
  int components;
  bool signs, overwrite, records;
};
/// Only the small blocks of assemblies are overwritten or kept in records.
bool by_component(const SumKind& kind, int most_unrolled) {
  return kind.components > most_unrolled && !kind.overwrite && !kind.records;
}
Extent extent_of(const SumKind& kind, int most_unrolled, size_t rows) {
  if (by_component(kind, most_unrolled)) return {kind.components, int64_t(rows)};
  return {int64_t(rows)};
}
Kernel few(const SumKind& kind) {
  if (!by_component(kind, kMostUnrolled))
    return few_kernel(kind.storage, kind.components, kind.signs, kind.overwrite, kind.records);
  return kind.storage == Storage::f64 ? few_by_component<f64>(kind.signs) : few_by_component<f32>(kind.signs);
}
Kernel chunks(const SumKind& kind) {
  if (!by_component(kind, kMostUnrolledTrees))
    return chunk_kernel(kind.storage, kind.components, kind.signs, kind.records);
  return kind.storage == Storage::f64 ? chunk_by_component<f64>(kind.signs)
                                      : chunk_by_component<f32>(kind.signs);
}
Kernel many(const SumKind& kind) {
  if (!by_component(kind, kMostUnrolledTrees))
    return many_kernel(kind.storage, kind.components, kind.overwrite);
  return kind.storage == Storage::f64 ? many_by_component<f64>() : many_by_component<f32>();
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
  if (!plan_.few_blocks.empty()) kernels.push_back([=] { return few(kind); });
  if (plan_.many_blocks.empty()) return kernels;
  kernels.push_back([=] { return chunks(kind); });
  kernels.push_back([=] { return many(kind); });
  return kernels;
}

void Gather::add(const Buffer& local, int components, bool signs, const Buffer& few_offsets,
                 const Buffer& many_offsets, const Buffer& target, bool overwrite, bool records) const {
  const SumKind kind{local.storage(), components, signs, overwrite, records};
  if (!plan_.few_blocks.empty())
    device_.launch(few(kind), extent_of(kind, kMostUnrolled, plan_.few_blocks.size()), few_first_, entries_,
                   few_offsets, local, target);
  if (plan_.many_blocks.empty()) return;
  const int64_t chunk_count = int64_t(plan_.chunk_begin.size());
  if (!partial_ || partial_.storage() != kind.storage || partial_.shape()[0] < components)
    partial_ = device_.allocate(kind.storage, {components, chunk_count});
  const Buffer partial = partial_.rows(0, components);
  device_.launch(chunks(kind), extent_of(kind, kMostUnrolledTrees, plan_.chunk_begin.size()), chunk_begin_,
                 chunk_end_, entries_, local, partial);
  device_.launch(many(kind), extent_of(kind, kMostUnrolledTrees, plan_.many_blocks.size()), many_first_,
                 many_offsets, partial, target);
}

}  // namespace lockstep::solve
