#include "solve/evaluate/assembly.hpp"

#include <fmt/format.h>

#include <optional>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/model/traced_buffer.hpp"

namespace lockstep::solve {

namespace {

using ir::Id;

constexpr int kLanes = AssemblyPlan::kLanes;
constexpr int64_t kMostShared = 40 << 10;
constexpr size_t kSmallGradient = 400;  // nodes

const std::vector<Value>& outputs_of(const Program& p, Sweep sweep) {
  static const std::vector<Value> none;
  switch (sweep) {
    case Sweep::value: return none;
    case Sweep::gradient: return p.gradient();
    case Sweep::diagonal: return p.diagonal();
    case Sweep::product: return p.free_product();
  }
  return none;
}

int components_of(const Program& p, Sweep sweep) {
  const int w = p.widths()[0];
  return sweep == Sweep::diagonal ? w * (w + 1) / 2 : sweep == Sweep::value ? 0 : w;
}

/// Components that one launch takes on.
struct Range {
  int first = 0, count = 0;
};

/// Elements from one record to the next where `components` stand side by side; 1 where each has its own
/// column.
int record_of(int components, bool records) {
  return !records || components > 4 ? 1 : components > 2 ? 4 : std::max(components, 1);
}

int64_t shared_bytes(const Program& p, Sweep sweep, Type type, int components) {
  const int stored = int(p.classes()[0].slots.size()), w = p.widths()[0];
  const int64_t inputs = int64_t(w) * kLanes * (sweep == Sweep::product ? 2 : 1);
  return (inputs + int64_t(components) * (stored * kLanes + 1)) * size_of(type);
}

/// As many components at once as shared memory holds.
std::vector<Range> ranges_of(const Program& p, Sweep sweep, Type type) {
  const int all = components_of(p, sweep);
  int most = std::max(all, 1);
  while (most > 1 && shared_bytes(p, sweep, type, most) > kMostShared) --most;
  std::vector<Range> ranges;
  for (int first = 0; first == 0 || first < all; first += most)
    ranges.push_back({first, std::min(most, all - first)});
  return ranges;
}

std::string_view name_of(Sweep sweep) {
  static constexpr std::string_view kNames[] = {"value", "gradient", "diagonal", "product"};
  return kNames[int(sweep)];
}

/// Numbers of a group in shared memory: `components` of each of `count` entries, in columns or side by side.
template <class T>
class SharedEntries {
 public:
  SharedEntries(int components, int64_t count, bool records)
      : record_(record_of(components, records)),
        column_(int32_t(record_ > 1 || components == 1 ? 1 : count)),
        values_(record_ > 1 ? count * record_ : count * components) {}
  /// Component c of an entry; `more` entries further.
  auto at(const Val<i32>& entry, int c, int more = 0) const {
    const Val<i32> place = record_ > 1 ? entry * record_ : entry;
    return values_[place + (c * column_ + more * record_)];
  }
  /// Components up to which a record must be written, so that it is written whole.
  int padded(int components) const { return std::max(components, record_); }

 private:
  int record_;
  int32_t column_;
  SharedArray<T> values_;
};

/// A group's blocks, brought in from a vector.
template <class T>
class SharedBlocks {
 public:
  SharedBlocks(int width, bool records) : width_(width), values_(width, kLanes, records) {}
  void fill(const TracedBuffer& from, const Val<i32>& at, const Val<i32>& lane) const {
    for (int c = 0; c < values_.padded(width_); ++c)
      values_.at(lane, c) =
          c < width_ ? Val<T>::from(from.load_as(lockstep::detail::kType<T>, {(at + c).id()})) : Val<T>(T(0));
  }
  Id load(int component, Id local) const { return Val<T>(values_.at(Val<i32>::from(local), component)).id(); }

 private:
  int width_;
  SharedEntries<T> values_;
};

template <class T>
void trace_sweep(const std::shared_ptr<const Program>& program, const Form& form, Sweep sweep, Range range,
                 bool overwrite, bool records) {
  const Program& p = *program;
  ir::Builder& b = lockstep::detail::builder();
  const Type type = lockstep::detail::kType<T>;
  const bool costs = sweep == Sweep::value || sweep == Sweep::gradient, derives = sweep != Sweep::value;
  const int width = p.widths()[0], components = range.count, stored = int(p.classes()[0].slots.size());
  const std::vector<Value>& outputs = outputs_of(p, sweep);
  const Storage result = sweep == Sweep::gradient ? storage_of(form.compute) : form.real;

  const TracedBuffer table("groups", Storage::i32, 2, ir::Access::read),
      state("state", form.state, 1, ir::Access::read), ambient("ambient", Storage::i32, 1, ir::Access::read),
      ids("ids", Storage::u32, 2, ir::Access::read);
  std::optional<TracedBuffer> data, vector, tangent, cost, write, word_first, words, word_rows, partial,
      target;
  if (p.data_columns() > 0) data.emplace("data", form.state, 2, ir::Access::read);
  if (sweep == Sweep::product) {
    vector.emplace("p", form.real, 1, ir::Access::read);
    tangent.emplace("tangent", Storage::i32, 1, ir::Access::read);
  }
  if (costs) cost.emplace("cost", form.cost, 1, ir::Access::write);
  if (derives) {
    write.emplace("write", Storage::i32, 1, ir::Access::read);
    word_first.emplace("word_first", Storage::i32, 1, ir::Access::read);
    words.emplace("words", Storage::u32, 1, ir::Access::read);
    if (records) word_rows.emplace("word_rows", Storage::i32, 1, ir::Access::read);
    partial.emplace("partial", result, 2, ir::Access::write);
    target.emplace("target", result, 1, overwrite ? ir::Access::write : ir::Access::read_write);
  }
  std::vector<Id> uniforms;
  for (int k = 0; k < p.uniforms(); ++k)
    uniforms.push_back(traced_scalar(fmt::format("constant{}", k), form.compute));

  const Group<1> g;
  const Val<i32> group = g.id(), lane = g.lane();
  const Val<i32> first = uniform(table.load_index(group, Val<i32>(0))),
                 last = uniform(table.load_index(group + 1, Val<i32>(0))),
                 instances = uniform(table.load_index(group, Val<i32>(1)));
  const Val<i32> own = first + lane;
  const SharedBlocks<T> x(width, records);
  std::optional<SharedBlocks<T>> moved;
  if (vector) moved.emplace(width, records);
  // Entry rank * kLanes + instance; the last one stays 0.
  std::optional<SharedEntries<T>> derivatives;
  if (derives) derivatives.emplace(components, int64_t(stored) * kLanes + 1, records);
  if_(own < last, [&] {
    x.fill(state, ambient.load_index(own), lane);
    if (moved) moved->fill(*vector, tangent->load_index(own), lane);
  });
  std::optional<SharedArray<u32>> group_words;
  Val<i32> first_row = 0, first_word = 0;
  if (derives && records) {
    // In the order in which they stand, which the processor foresees.
    first_row = uniform(table.load_index(group, Val<i32>(2)));
    first_word = uniform(table.load_index(group, Val<i32>(3)));
    group_words.emplace(int64_t(kLanes) * (int64_t(p.widths().size()) + 1) / 2);
    const Val<i32> count = uniform(table.load_index(group + 1, Val<i32>(3))) - first_word;
    for (int k = 0; k < kLanes * int(p.widths().size() + 1) / 2; k += kLanes)
      if_(lane + k < count,
          [&] { (*group_words)[lane + k] = Val<u32>::from(words->load({(first_word + lane + k).id()})); });
  }
  if (derives)
    if_(lane == 0, [&] {
      for (int c = 0; c < components; ++c) derivatives->at(lane, c, stored * kLanes) = T(0);
    });
  barrier();

  Var<T> own_cost = T(0);
  if_(lane < instances, [&] {
    const Val<i32> place = group * kLanes + lane;
    std::vector<Id> local(p.widths().size(), ir::kNone), pairs((p.widths().size() + 1) / 2, ir::kNone);
    const auto local_of = [&](int slot) {
      Id& id = local[size_t(slot)];
      if (id != ir::kNone) return id;
      Id& pair = pairs[size_t(slot / 2)];
      if (pair == ir::kNone) pair = ids.load({b.i32(slot / 2), place.id()});
      const Val<u32> both = Val<u32>::from(pair);
      id = cast<i32>(slot % 2 ? both >> 16u : both & 0xffffu).id();
      return id;
    };
    Lowering lower(p.graph(), form.compute, [&](uint32_t number) {
      const Program::Leaf& leaf = p.leaves()[number];
      switch (leaf.kind) {
        case Program::Leaf::Kind::component: return x.load(leaf.index, local_of(leaf.slot));
        case Program::Leaf::Kind::direction: return moved->load(leaf.index, local_of(leaf.slot));
        case Program::Leaf::Kind::datum: return data->load_as(form.compute, {b.i32(leaf.index), place.id()});
        case Program::Leaf::Kind::uniform: break;
      }
      return uniforms[size_t(leaf.index)];
    });
    if (costs) own_cost = Val<T>::from(lower(p.cost()));
    const auto derive = [&](int c, int rank) {
      derivatives->at(lane, c, rank * kLanes) =
          Val<T>::from(lower(outputs[size_t((range.first + c) * stored + rank)]));
    };
    if (!records)
      for (int c = 0; c < components; ++c)
        for (int rank = 0; rank < stored; ++rank) derive(c, rank);
    else if (derives)
      for (int rank = 0; rank < stored; ++rank) {
        for (int c = 0; c < components; ++c) derive(c, rank);
        for (int c = components; c < derivatives->padded(components); ++c)
          derivatives->at(lane, c, rank * kLanes) = T(0);
      }
  });
  if (costs) {
    const Id wide = b.convert(value_type(form.cost), Val<T>(own_cost).id());
    const Id sum = b.emit(ir::Op::group_reduce, value_type(form.cost), {wide}, uint64_t(ir::Reduction::add));
    if_(lane == 0, [&] { cost->store({group.id()}, sum); });
  }
  if (!derives) return;
  barrier();

  if_(own < last, [&] {
    std::vector<Id> sums;
    for (int c = 0; c < components; ++c) sums.push_back(b.variable(b.number(type, 0)));
    bool negative = false;
    for (const Program::Alias& alias : p.aliases()) negative = negative || alias.sign < 0;
    negative = negative && sweep != Sweep::diagonal;
    const auto add_word = [&](const Val<u32>& word) {
      for (const Val<u32>& entry : {Val<u32>(word & 0xffffu), Val<u32>(word >> 16u)}) {
        const Val<i32> position = cast<i32>(entry & (AssemblyPlan::kNegative - 1));
        const Val<bool> minus = (entry & AssemblyPlan::kNegative) != 0u;
        for (int c = 0; c < components; ++c) {
          const Val<T> v = derivatives->at(position, c);
          const Val<T> term = negative ? select(minus, -v, v) : v;
          b.set(sums[size_t(c)], b.op(ir::Op::fadd, {b.get(sums[size_t(c)]), term.id()}));
        }
      }
    };
    if (records) {
      for_(Val<i32>(0), word_first->load_index(own), [&](Val<i32> row) {
        add_word((*group_words)[word_rows->load_index(first_row + row) - first_word + lane]);
      });
    } else {
      for_(word_first->load_index(own), word_first->load_index(own + 1),
           [&](Val<i32> at) { add_word(Val<u32>::from(words->load({at.id()}))); });
    }
    const Val<i32> to = write->load_index(own);
    if_(
        to >= 0,
        [&] {
          std::vector<Id> results;
          for (int c = 0; c < components; ++c) {
            const Id at = (to + (range.first + c)).id(), sum = b.get(sums[size_t(c)]);
            results.push_back(overwrite ? sum : b.op(ir::Op::fadd, {target->load({at}), sum}));
          }
          for (int c = 0; c < components; ++c)
            target->store({(to + (range.first + c)).id()}, results[size_t(c)]);
        },
        [&] {
          if_(to != AssemblyPlan::kNone, [&] {
            for (int c = 0; c < components; ++c)
              if (records)
                partial->store({(-1 - to).id(), b.i32(range.first + c)}, b.get(sums[size_t(c)]));
              else
                partial->store({b.i32(range.first + c), (-1 - to).id()}, b.get(sums[size_t(c)]));
          });
        });
  });
}

Kernel sweep_kernel(const std::shared_ptr<const Program>& program, const Form& form, Sweep sweep, Range range,
                    bool overwrite, bool records) {
  std::string variant = fmt::format("{}.{}", name_of(sweep), form_name(form));
  if (range.first > 0) variant += fmt::format(".from{}", range.first);
  if (overwrite) variant += ".set";
  if (records) variant += ".records";
  return cached_kernel(fmt::format("assembly {} {}", variant, program->key()), [&] {
    KernelOptions options;
    options.group = {kLanes, 1, 1};
    // Small f32 gradients wait for memory more than they lose by spilling: 0.068 for 0.077 ms on an H200.
    if (sweep == Sweep::gradient && form.compute == Type::f32 &&
        autodiff::reachable(program->gradient()).size() <= kSmallGradient)
      options.min_blocks = 8;
    return Kernel::trace(fmt::format("solve.{}.assembly.{}", program->name(), variant), ir::Domain::groups, 1,
                         options, [program, form, sweep, range, overwrite, records](ir::Builder&) {
                           if (form.compute == Type::f64)
                             trace_sweep<f64>(program, form, sweep, range, overwrite, records);
                           else
                             trace_sweep<f32>(program, form, sweep, range, overwrite, records);
                         });
  });
}

/// The plan's words row by row: row k of a group has the k-th word of every block that has so many, which are
/// the group's first blocks.
struct WordRows {
  std::vector<int32_t> counts, starts;         // by local block; by row: its first word
  std::vector<int32_t> first_row, first_word;  // by group
  std::vector<uint32_t> words;
};
WordRows word_rows(const AssemblyPlan& plan) {
  WordRows rows;
  for (size_t k = 0; k + 1 < plan.word_first.size(); ++k)
    rows.counts.push_back(plan.word_first[k + 1] - plan.word_first[k]);
  for (int64_t g = 0; g < plan.group_count(); ++g) {
    const auto first = size_t(plan.groups[size_t(2 * g)]), last = size_t(plan.groups[size_t(2 * g + 2)]);
    rows.first_row.push_back(int32_t(rows.starts.size()));
    rows.first_word.push_back(int32_t(rows.words.size()));
    for (int32_t row = 0; first < last && row < rows.counts[first]; ++row) {
      rows.starts.push_back(int32_t(rows.words.size()));
      for (size_t k = first; k < last && row < rows.counts[k]; ++k)
        rows.words.push_back(plan.words[size_t(plan.word_first[k] + row)]);
    }
  }
  rows.first_row.push_back(int32_t(rows.starts.size()));
  rows.first_word.push_back(int32_t(rows.words.size()));
  return rows;
}

Buffer upload_or_none(const Device& device, const std::vector<int32_t>& v) {
  return v.empty() ? Buffer() : device.upload(v);
}

}  // namespace

bool can_assemble(const Program& p, const Form& values, const Form& derivatives, const Limits& limits) {
  if (p.energy() || p.classes().size() != 1 || p.widths()[0] > 4 || p.widths().size() > 16) return false;
  for (const auto& slot : p.topology().slots)
    if (!slot->euclidean) return false;
  const int width = p.widths()[0];
  return shared_bytes(p, Sweep::gradient, values.compute, width) <= kMostShared &&
         shared_bytes(p, Sweep::product, derivatives.compute, width) <= kMostShared &&
         limits.shared_bytes >= kMostShared && limits.bindings >= 12 && limits.group_lanes >= kLanes;
}

Assembly::Assembly(const Device& device, std::shared_ptr<const Program> program, const Form& values,
                   const Form& derivatives, AssemblyPlan plan, const std::vector<double>& data, int64_t n,
                   std::vector<double> uniforms, const Offsets& offsets)
    : device_(device),
      program_(std::move(program)),
      values_(values),
      derivatives_(derivatives),
      groups_(plan.group_count()),
      covers_all_(plan.covers_all),
      records_(by_records(device)),
      uniforms_(std::move(uniforms)) {
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
  if (records_) {
    const WordRows rows = word_rows(plan);
    std::vector<int32_t> table;
    for (size_t g = 0; g < rows.first_row.size(); ++g)
      table.insert(table.end(),
                   {plan.groups[2 * g], plan.groups[2 * g + 1], rows.first_row[g], rows.first_word[g]});
    table_ = device.upload(std::span<const int32_t>(table), {groups_ + 1, 4});
    word_first_ = device.upload(rows.counts);
    word_rows_ = device.upload(rows.starts);
    words_ = device.upload(rows.words);
  } else {
    table_ = device.upload(std::span<const int32_t>(plan.groups), {groups_ + 1, 2});
    word_first_ = device.upload(plan.word_first);
    words_ = device.upload(plan.words);
  }
  ids_ = device.upload(std::span<const uint32_t>(plan.ids), {(plan.slots + 1) / 2, places});
  if (const int columns = program_->data_columns(); columns > 0) {
    std::vector<double> padded(size_t(columns * places), 0.0);
    for (int k = 0; k < columns; ++k)
      for (int64_t place = 0; place < places; ++place)
        if (plan.order[size_t(place)] >= 0)
          padded[size_t(k * places + place)] = data[size_t(k * n + plan.order[size_t(place)])];
    data_ = upload_numbers(device, values.state, padded, {columns, places});
  }

  partial_rows_ = std::max<int64_t>(1, int64_t(plan.shared_blocks.size()));
  std::vector<Occurrence> occurrences;
  int32_t most = -1;
  for (size_t k = 0; k < plan.shared_blocks.size(); ++k) {
    occurrences.push_back({plan.shared_blocks[k], int32_t(k)});
    most = std::max(most, plan.shared_blocks[k]);
  }
  if (occurrences.empty()) return;
  const GatherPlan gather = plan_gather(program_->widths()[0], partial_rows_, int64_t(most) + 1, occurrences);
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

std::vector<std::function<Kernel()>> Assembly::kernels(const std::shared_ptr<const Program>& program,
                                                       Sweep sweep, const Form& form, bool overwrite,
                                                       bool records) {
  std::vector<std::function<Kernel()>> kernels;
  for (const Range& range : ranges_of(*program, sweep, form.compute))
    kernels.push_back([=] { return sweep_kernel(program, form, sweep, range, overwrite, records); });
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

void Assembly::run(Sweep sweep, const Buffer& state, const Buffer& p, const Buffer& costs,
                   const Buffer& target, bool overwrite) const {
  const Form& form = sweep == Sweep::value || sweep == Sweep::gradient ? values_ : derivatives_;
  const int components = components_of(*program_, sweep);
  std::vector<Argument> arguments{table_, state, ambient_, ids_};
  if (data_) arguments.push_back(data_);
  if (sweep == Sweep::product) arguments.insert(arguments.end(), {p, tangent_});
  if (sweep == Sweep::value || sweep == Sweep::gradient) arguments.push_back(costs);
  Buffer partial;
  if (sweep != Sweep::value) {
    partial = with_partials(target.storage(), components);
    arguments.insert(arguments.end(),
                     {sweep == Sweep::diagonal ? write_diagonal_ : write_tangent_, word_first_, words_});
    if (records_) arguments.push_back(word_rows_);
    arguments.insert(arguments.end(), {partial, target});
  }
  for (const double u : uniforms_) arguments.push_back(form.compute == Type::f32 ? double(float(u)) : u);
  for (const Range& range : ranges_of(*program_, sweep, form.compute))
    device_.launch_with(sweep_kernel(program_, form, sweep, range, overwrite, records_), {groups_}, arguments,
                        {});
  if (sweep != Sweep::value && shared_)
    shared_->add(partial, components, false, sweep == Sweep::diagonal ? few_diagonal_ : few_tangent_,
                 sweep == Sweep::diagonal ? many_diagonal_ : many_tangent_, target, overwrite, records_);
}

}  // namespace lockstep::solve
