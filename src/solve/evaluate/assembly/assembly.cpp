#include "solve/evaluate/assembly/assembly.hpp"

#include <fmt/format.h>

#include <optional>

#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

namespace {

using autodiff::Lowering;

constexpr int kLanes = AssemblyPlan::kLanes;
constexpr int64_t kMostShared = 40 << 10;
constexpr size_t kSmallGradient = 400;  // nodes

const std::vector<Value>& outputs_of(const TermDerivatives& term, Assembled what) {
  static const std::vector<Value> none;
  switch (what) {
    case Assembled::value: return none;
    case Assembled::gradient: return term.gradient();
    case Assembled::diagonal: return term.diagonal();
    case Assembled::product: return term.free_product();
  }
  return none;
}

int components_of(const TermDerivatives& term, Assembled what) {
  const int w = term.widths()[0];
  return what == Assembled::diagonal ? diagonal_parts(w) : what == Assembled::value ? 0 : w;
}

/// Components that one launch takes on.
struct Range {
  int first = 0, count = 0;
};

/// Elements from one record to the next where `components` are stored contiguously; 1 where each has its own
/// column.
int record_of(int components, bool records) {
  return !records || components > 4 ? 1 : components > 2 ? 4 : std::max(components, 1);
}

int64_t shared_bytes(const TermDerivatives& term, Assembled what, Type type, int components) {
  const int stored = int(term.classes()[0].slots.size()), w = term.widths()[0];
  const int64_t inputs = int64_t(w) * kLanes * (what == Assembled::product ? 2 : 1);
  return (inputs + int64_t(components) * (stored * kLanes + 1)) * size_of(type);
}

/// As many components at once as shared memory holds.
std::vector<Range> ranges_of(const TermDerivatives& term, Assembled what, Type type) {
  const int all = components_of(term, what);
  int most = std::max(all, 1);
  while (most > 1 && shared_bytes(term, what, type, most) > kMostShared) --most;
  std::vector<Range> ranges;
  for (int first = 0; first == 0 || first < all; first += most)
    ranges.push_back({first, std::min(most, all - first)});
  return ranges;
}

std::string_view name_of(Assembled what) {
  static constexpr std::string_view kNames[] = {"value", "gradient", "diagonal", "product"};
  return kNames[int(what)];
}

/// Numbers of a group in shared memory: `components` of each of `count` entries, in columns or side by side.
class SharedEntries {
 public:
  SharedEntries(Storage storage, int components, int64_t count, bool records)
      : record_(record_of(components, records)),
        column_(int32_t(record_ > 1 || components == 1 ? 1 : count)),
        values_(storage, record_ > 1 ? count * record_ : count * components) {}
  /// Component c of an entry; `more` entries further.
  AnyVal load(const Val<i32>& entry, int c, int more = 0) const {
    return values_.load(place(entry, c, more));
  }
  void store(const Val<i32>& entry, int c, int more, const AnyVal& value) const {
    values_.store(place(entry, c, more), value);
  }
  /// Components up to which a record must be written, so that it is written whole.
  int padded(int components) const { return std::max(components, record_); }

 private:
  Val<i32> place(const Val<i32>& entry, int c, int more) const {
    const Val<i32> first = record_ > 1 ? entry * record_ : entry;
    return first + (c * column_ + more * record_);
  }
  int record_;
  int32_t column_;
  AnyShared values_;
};

/// A group's blocks in shared memory, brought in from a vector at `offsets`.
class SharedBlocks {
 public:
  SharedBlocks(Storage storage, int width, bool records, const AnyGrid& from, const Grid<i32, 1>& offsets)
      : type_(value_type(storage)),
        width_(width),
        from_(from),
        offsets_(offsets),
        values_(storage, width, kLanes, records) {}
  void fill(const Val<i32>& block, const Val<i32>& lane) const {
    const Val<i32> at = offsets_[block];
    for (int c = 0; c < values_.padded(width_); ++c)
      values_.store(lane, c, 0, c < width_ ? from_.load_as(type_, {at + c}) : AnyVal::number(type_, 0));
  }
  AnyVal load(int component, const Val<i32>& local) const { return values_.load(local, component); }

 private:
  Type type_;
  int width_;
  AnyGrid from_;
  Grid<i32, 1> offsets_;
  SharedEntries values_;
};

/// Which of the kernels of a term's assembly.
struct Variant {
  Assembled what;
  Range range;
  bool overwrite, records;
  bool costs() const { return what == Assembled::value || what == Assembled::gradient; }
  bool derives() const { return what != Assembled::value; }
};

/// Where a group's sums by block go: the parameters, and the words that say which entries a block adds.
class BlockSums {
 public:
  BlockSums(const TermDerivatives& term, const ElementTypes& types, const Variant& v, Parameters& p)
      : variant_(v),
        stored_(int(term.classes()[0].slots.size())),
        type_(types.compute),
        write_(p.read<i32, 1>("write")),
        word_first_(p.read<i32, 1>("word_first")),
        words_(p.read<u32, 1>("words")),
        partial_(p.write("partial", storage(types), 2)),
        target_(v.overwrite ? p.write("target", storage(types), 1)
                            : p.read_write("target", storage(types), 1)),
        // The last entry, stored * kLanes, stays 0.
        derivatives_(storage_of(types.compute), v.range.count, int64_t(stored_) * kLanes + 1, v.records) {
    for (const TermDerivatives::Alias& alias : term.aliases())
      negative_ = negative_ || (alias.sign < 0 && v.what != Assembled::diagonal);
  }

  void clear_last(const Val<i32>& lane) const {
    if_(lane == 0, [&] {
      for (int c = 0; c < variant_.range.count; ++c)
        derivatives_.store(lane, c, stored_ * kLanes, AnyVal::number(type_, 0));
    });
  }
  /// Derivatives of an instance: component c to the stored slot `rank` is derived(c, rank).
  void keep(const Val<i32>& lane, const std::function<AnyVal(int c, int rank)>& derived) const {
    const int components = variant_.range.count;
    const auto put = [&](int c, int rank) {
      derivatives_.store(lane, c, rank * kLanes,
                         c < components ? derived(c, rank) : AnyVal::number(type_, 0));
    };
    if (variant_.records) {
      for (int rank = 0; rank < stored_; ++rank)
        for (int c = 0; c < derivatives_.padded(components); ++c) put(c, rank);
      return;
    }
    for (int c = 0; c < components; ++c)
      for (int rank = 0; rank < stored_; ++rank) put(c, rank);
  }
  /// Adds the derivatives to one block and writes the sums.
  void sum(const Val<i32>& block) const {
    std::vector<AnyVar> sums;
    for (int c = 0; c < variant_.range.count; ++c) sums.emplace_back(AnyVal::number(type_, 0));
    for_(word_first_[block], word_first_[block + 1], [&](Val<i32> at) { add_word(sums, words_[at]); });
    const Val<i32> to = write_[block];
    if_(
        to >= 0, [&] { write_target(sums, to); },
        [&] { if_(to != AssemblyPlan::kNone, [&] { write_partial(sums, -1 - to); }); });
  }

 private:
  Storage storage(const ElementTypes& types) const {
    return variant_.what == Assembled::gradient ? storage_of(types.compute) : types.real;
  }
  void add_word(std::vector<AnyVar>& sums, const Val<u32>& word) const {
    for (const Val<u32>& entry : {Val<u32>(word & 0xffffu), Val<u32>(word >> 16u)}) {
      const Val<i32> position = cast<i32>(entry & (AssemblyPlan::kNegative - 1));
      const Val<bool> minus = (entry & AssemblyPlan::kNegative) != 0u;
      for (int c = 0; c < variant_.range.count; ++c) {
        const AnyVal v = derivatives_.load(position, c);
        sums[size_t(c)] += negative_ ? select(minus, -v, v) : v;
      }
    }
  }
  void write_target(const std::vector<AnyVar>& sums, const Val<i32>& to) const {
    const int first = variant_.range.first;
    std::vector<AnyVal> results;
    for (int c = 0; c < variant_.range.count; ++c) {
      const AnyVal sum = sums[size_t(c)];
      results.push_back(variant_.overwrite ? sum : target_.load({to + (first + c)}) + sum);
    }
    for (int c = 0; c < variant_.range.count; ++c) target_.store({to + (first + c)}, results[size_t(c)]);
  }
  void write_partial(const std::vector<AnyVar>& sums, const Val<i32>& row) const {
    for (int c = 0; c < variant_.range.count; ++c) {
      const int component = variant_.range.first + c;
      if (variant_.records)
        partial_.store({row, component}, sums[size_t(c)]);
      else
        partial_.store({component, row}, sums[size_t(c)]);
    }
  }

  Variant variant_;
  int stored_;
  Type type_;
  bool negative_ = false;
  Grid<i32, 1> write_, word_first_;
  Grid<u32, 1> words_;
  AnyGrid partial_, target_;
  SharedEntries derivatives_;
};

/// An instance's numbers, its blocks from shared memory.
class PlacedNumbers {
 public:
  PlacedNumbers(const TermDerivatives& term, const ElementTypes& types, Parameters& p)
      : compute_(types.compute), slots_(term.widths().size()), ids_(p.read<u32, 2>("ids")) {
    if (term.data_columns() > 0) data_.emplace(p.read("data", types.state, 2));
    for (int k = 0; k < term.uniforms(); ++k)
      uniforms_.push_back(p.scalar(fmt::format("constant{}", k), types.compute));
  }
  /// Leaves of the instance at `place`; blocks of the state, and of p where there is one.
  std::function<AnyVal(const TermDerivatives::Leaf&)> at(const Val<i32>& place, const SharedBlocks& x,
                                                         const std::optional<SharedBlocks>& moved) const {
    struct Locals {
      std::vector<std::optional<Val<i32>>> local;
      std::vector<std::optional<Val<u32>>> pairs;
    };
    const auto locals = std::make_shared<Locals>();
    locals->local.resize(slots_), locals->pairs.resize((slots_ + 1) / 2);
    const auto local_of = [this, locals, place](int slot) {
      std::optional<Val<i32>>& local = locals->local[size_t(slot)];
      if (local) return *local;
      std::optional<Val<u32>>& pair = locals->pairs[size_t(slot / 2)];
      if (!pair) pair.emplace(ids_(slot / 2, place));
      local.emplace(cast<i32>(slot % 2 ? *pair >> 16u : *pair & 0xffffu));
      return *local;
    };
    return [this, local_of, place, &x, &moved](const TermDerivatives::Leaf& leaf) -> AnyVal {
      switch (leaf.kind) {
        case TermDerivatives::Leaf::Kind::component: return x.load(leaf.index, local_of(leaf.slot));
        case TermDerivatives::Leaf::Kind::direction: return moved->load(leaf.index, local_of(leaf.slot));
        case TermDerivatives::Leaf::Kind::datum: return data_->load_as(compute_, {leaf.index, place});
        case TermDerivatives::Leaf::Kind::uniform: break;
      }
      return uniforms_[size_t(leaf.index)];
    };
  }

 private:
  Type compute_;
  size_t slots_;
  Grid<u32, 2> ids_;
  std::optional<AnyGrid> data_;
  std::vector<AnyVal> uniforms_;
};

void trace_assembly(const TermDerivatives& term, const ElementTypes& types, const Variant& v,
                    const Group<1>& g, Parameters& p) {
  const Storage compute = storage_of(types.compute);
  const int width = term.widths()[0], stored = int(term.classes()[0].slots.size());
  const auto table = p.read<i32, 2>("groups");
  const PlacedNumbers numbers(term, types, p);
  const Val<i32> group = g.id(), lane = g.lane();
  const Val<i32> first = uniform(table(group, 0)), last = uniform(table(group + 1, 0)),
                 instances = uniform(table(group, 1));
  const Val<i32> own = first + lane;
  const SharedBlocks x(compute, width, v.records, p.read("state", types.state, 1), p.read<i32, 1>("ambient"));
  std::optional<SharedBlocks> moved;
  if (v.what == Assembled::product)
    moved.emplace(compute, width, v.records, p.read("p", types.real, 1), p.read<i32, 1>("tangent"));
  std::optional<BlockSums> sums;
  if (v.derives()) sums.emplace(term, types, v, p);
  if_(own < last, [&] {
    x.fill(own, lane);
    if (moved) moved->fill(own, lane);
  });
  if (sums) sums->clear_last(lane);
  barrier();

  AnyVar own_cost = AnyVal::number(types.compute, 0);
  if_(lane < instances, [&] {
    const auto leaf = numbers.at(group * kLanes + lane, x, moved);
    Lowering lower(term.graph(), types.compute, [&](uint32_t number) { return leaf(term.leaves()[number]); });
    if (v.costs()) own_cost = lower(term.cost());
    const std::vector<Value>& outputs = outputs_of(term, v.what);
    if (sums)
      sums->keep(
          lane, [&](int c, int rank) { return lower(outputs[size_t((v.range.first + c) * stored + rank)]); });
  });
  if (v.costs()) {
    const AnyGrid cost = p.write("cost", types.cost, 1);
    const AnyVal sum = group_sum(AnyVal(own_cost).convert(cost.type()));
    if_(lane == 0, [&] { cost.store({group}, sum); });
  }
  if (!sums) return;
  barrier();
  if_(own < last, [&] { sums->sum(own); });
}

Kernel assembly_kernel(const std::shared_ptr<const TermDerivatives>& term, const ElementTypes& types,
                       const Variant& v) {
  std::string variant = fmt::format("{}.{}", name_of(v.what), name_of(types));
  if (v.range.first > 0) variant += fmt::format(".from{}", v.range.first);
  if (v.overwrite) variant += ".set";
  if (v.records) variant += ".records";
  return cached_kernel(fmt::format("assembly {} {}", variant, term->key()), [&] {
    KernelOptions options;
    options.group = {kLanes, 1, 1};
    // Small f32 gradients wait for memory more than they lose by spilling: 0.068 for 0.077 ms on an H200.
    if (v.what == Assembled::gradient && types.compute == Type::f32 &&
        autodiff::reachable(term->gradient()).size() <= kSmallGradient)
      options.min_blocks = 8;
    return kernel(
        fmt::format("solve.{}.assembly.{}", term->name(), variant),
        [&](Group<1> g, Parameters& p) { trace_assembly(*term, types, v, g, p); }, options);
  });
}

Buffer upload_or_none(const Device& device, const std::vector<int32_t>& v) {
  return v.empty() ? Buffer() : device.upload(v);
}

}  // namespace

bool can_assemble(const TermDerivatives& p, const ElementTypes& values, const ElementTypes& derivatives,
                  const Limits& limits) {
  if (p.energy() || p.host() || p.classes().size() != 1 || p.widths()[0] > 4 || p.widths().size() > 16)
    return false;
  for (const auto& slot : p.expression().slots)
    if (!slot->euclidean) return false;
  const int width = p.widths()[0];
  return shared_bytes(p, Assembled::gradient, values.compute, width) <= kMostShared &&
         shared_bytes(p, Assembled::product, derivatives.compute, width) <= kMostShared &&
         limits.shared_bytes >= kMostShared && limits.bindings >= 12 && limits.group_lanes >= kLanes;
}

Assembly::Assembly(const Device& device, std::shared_ptr<const TermDerivatives> term,
                   const ElementTypes& values, const ElementTypes& derivatives, AssemblyPlan plan,
                   const std::vector<double>& data, int64_t n, std::vector<double> uniforms,
                   const Offsets& offsets)
    : device_(device),
      term_(std::move(term)),
      values_(values),
      derivatives_(derivatives),
      groups_(plan.group_count()),
      covers_all_(plan.covers_all),
      records_(by_records(device)) {
  const int64_t places = plan.places(), locals = int64_t(plan.block.size());
  std::vector<int32_t> ambient, tangent, write_tangent, write_diagonal;
  bool same = true;
  for (int64_t k = 0; k < locals; ++k) {
    const int32_t b = plan.block[size_t(k)], w = plan.write[size_t(k)];
    ambient.push_back(int32_t(offsets.ambient(b)));
    tangent.push_back(int32_t(offsets.tangent(b)));
    same = same && ambient.back() == tangent.back();
    write_tangent.push_back(w >= 0 ? int32_t(offsets.tangent(w)) : w);
    write_diagonal.push_back(w >= 0 ? int32_t(offsets.diagonal(w)) : w);
  }
  ambient_ = device.upload(ambient);
  tangent_ = same ? ambient_ : device.upload(tangent);
  write_tangent_ = device.upload(write_tangent);
  write_diagonal_ = device.upload(write_diagonal);
  table_ = device.upload(std::span<const int32_t>(plan.groups), {groups_ + 1, 2});
  word_first_ = device.upload(plan.word_first);
  words_ = device.upload(plan.words);
  ids_ = device.upload(std::span<const uint32_t>(plan.ids), {(plan.slots + 1) / 2, places});
  order_ = std::move(plan.order);
  if (const int columns = term_->data_columns(); columns > 0)
    data_ = device.allocate(values.state, {columns, places});
  set_numbers(data, n, std::move(uniforms));

  partial_rows_ = std::max<int64_t>(1, int64_t(plan.shared_blocks.size()));
  std::vector<Occurrence> occurrences;
  int32_t most = -1;
  for (size_t k = 0; k < plan.shared_blocks.size(); ++k) {
    occurrences.push_back({plan.shared_blocks[k], int32_t(k)});
    most = std::max(most, plan.shared_blocks[k]);
  }
  if (occurrences.empty()) return;
  const GatherPlan gather = plan_gather(term_->widths()[0], partial_rows_, int64_t(most) + 1, occurrences);
  shared_ = std::make_unique<Gather>(device, gather);
  const auto offsets_of = [&](const std::vector<int32_t>& blocks,
                              const std::function<int64_t(int64_t)>& offset) {
    std::vector<int32_t> at;
    for (const int32_t block : blocks) at.push_back(int32_t(offset(block)));
    return upload_or_none(device, at);
  };
  few_tangent_ = offsets_of(gather.few_blocks, offsets.tangent);
  many_tangent_ = offsets_of(gather.many_blocks, offsets.tangent);
  few_diagonal_ = offsets_of(gather.few_blocks, offsets.diagonal);
  many_diagonal_ = offsets_of(gather.many_blocks, offsets.diagonal);
}

void Assembly::set_numbers(const std::vector<double>& data, int64_t n, std::vector<double> uniforms) {
  uniforms_ = std::move(uniforms);
  if (!data_) return;
  const int columns = term_->data_columns();
  std::vector<double> padded(size_t(data_.elements()), 0.0);
  for (int k = 0; k < columns; ++k)
    for (size_t place = 0; place < order_.size(); ++place)
      if (order_[place] >= 0) padded[size_t(k) * order_.size() + place] = data[size_t(k * n + order_[place])];
  write_numbers(device_, padded, data_);
}

std::vector<std::function<Kernel()>> Assembly::kernels(const std::shared_ptr<const TermDerivatives>& term,
                                                       Assembled what, const ElementTypes& types,
                                                       bool overwrite, bool records) {
  std::vector<std::function<Kernel()>> kernels;
  for (const Range& range : ranges_of(*term, what, types.compute))
    kernels.push_back([=] { return assembly_kernel(term, types, Variant{what, range, overwrite, records}); });
  return kernels;
}

Buffer Assembly::with_partials(Storage storage, int components) const {
  const int64_t bytes = components * partial_rows_ * size_of(storage);
  if (!partial_ || partial_.bytes() < bytes || partial_.storage() != storage)
    partial_ = device_.allocate(storage, {components * partial_rows_});
  const int64_t count = components * partial_rows_;
  const Shape shape = records_ ? Shape{partial_rows_, components} : Shape{components, partial_rows_};
  return partial_.rows(0, count).reshape(shape);
}

void Assembly::run(Assembled what, const Buffer& state, const Buffer& p, const Buffer& costs,
                   const Buffer& target, bool overwrite) const {
  const bool with_costs = what == Assembled::value || what == Assembled::gradient;
  const ElementTypes& types = with_costs ? values_ : derivatives_;
  const int components = components_of(*term_, what);
  Arguments arguments;
  arguments.set("groups", table_).set("state", state).set("ambient", ambient_).set("ids", ids_);
  if (data_) arguments.set("data", data_);
  set_uniforms(arguments, uniforms_, types);
  if (what == Assembled::product) arguments.set("p", p).set("tangent", tangent_);
  if (with_costs) arguments.set("cost", costs);
  Buffer partial;
  if (what != Assembled::value) {
    partial = with_partials(target.storage(), components);
    arguments.set("write", what == Assembled::diagonal ? write_diagonal_ : write_tangent_)
        .set("word_first", word_first_)
        .set("words", words_)
        .set("partial", partial)
        .set("target", target);
  }
  for (const Range& range : ranges_of(*term_, what, types.compute))
    device_.launch(assembly_kernel(term_, types, {what, range, overwrite, records_}), {groups_}, arguments);
  if (what != Assembled::value && shared_)
    shared_->add(partial, components, false, what == Assembled::diagonal ? few_diagonal_ : few_tangent_,
                 what == Assembled::diagonal ? many_diagonal_ : many_tangent_, target, overwrite, records_);
}

}  // namespace lockstep::solve
