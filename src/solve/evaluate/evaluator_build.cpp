// Laying a problem out on a device: batches, index tables, constants, sums.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/platform/threads.hpp"
#include "core/reports/trace.hpp"
#include "solve/evaluate/earlier_batches.hpp"
#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

namespace {

/// Numbers that simplify an expression stay literals where all instances have them.
bool simplifies(double number) {
  for (const double n : {0.0, 1.0, 2.0, 0.5})
    if (number == n || number == -n) return true;
  return false;
}

/// The first segment that holds instances; one that was taken out holds nothing.
const Segment& first_segment(const Batch& batch) {
  return *std::find_if(batch.segments.begin(), batch.segments.end(),
                       [](const Segment& s) { return s.count > 0; });
}

std::vector<ConstantUse> uses_of(const Batch& batch) {
  constexpr int kMostUniforms = 32;
  const size_t count = size_t(batch.expression->constants);
  std::vector<ConstantUse> uses(count);
  int uniforms = 0;
  for (size_t k = 0; k < count; ++k) {
    const double value = first_segment(batch).constants[k];
    bool same = true;
    for (const Segment& s : batch.segments)
      for (size_t at = k; at < s.constants.size() && same; at += count)
        same = std::bit_cast<uint64_t>(s.constants[at]) == std::bit_cast<uint64_t>(value);
    if (same && simplifies(value))
      uses[k] = {ConstantUse::Where::literal, value};
    else if (same && uniforms < kMostUniforms)
      uses[k] = {ConstantUse::Where::uniform, 0}, ++uniforms;
    else
      uses[k] = {ConstantUse::Where::column, 0};
  }
  return uses;
}

}  // namespace

std::shared_ptr<const TermDerivatives> derivatives_of(const Batch& batch) {
  if (batch.derivatives) return batch.derivatives;
  return TermDerivatives::shared(batch.expression, uses_of(batch));
}

void Evaluator::State::build(const Problem::State& problem) {
  static std::atomic<uint64_t> count{0};
  problem.check_unit_vectors();
  BlockPlaces places(problem);
  int64_t instances = 0;
  for (const Batch& b : problem.batches) instances += b.instances;
  if (instances == 0)
    throw InputError("a problem without residuals", "solve evaluator", "one instance or more");
  stays = places.shared_with(*this), all_stay = places.same_as(*this);
  bool changed = !all_stay;
  if (changed) {
    static_cast<BlockPlaces&>(*this) = std::move(places);
    if (layout) {
      const PartSumSizes all{tangent, diagonal_size, ambient};
      const SetState& last = sets.back();
      parts = layout->make_sums(
          device, *layout,
          layout->split ? PartSumSizes{last.first_tangent, first_diagonal.back(), last.first_ambient} : all,
          all);
    }
    allocate_state();
  }
  changed = take_bounds(problem) || changed;
  changed = build_batches(problem) || changed;
  if (!changed) return;
  id = ++count;
  block_diagonal = gradient_scratch = slot_scratch = diagonal_scratch = {};
  share_scratch();
  allocate_costs();
  host = HostSums::make(*this);
  compile_sums();
  for (size_t k = 0; k < batches.size(); ++k)
    if (k == 0 || batches[k].term != batches[k - 1].term)
      compile_ahead(batches[k].term,
                    {batches[k].assembly != nullptr,
                     k == 0 && batches[k].assembly && batches[k].assembly->covers_all()},
                    false);
}

bool Evaluator::State::take_bounds(const Problem::State& problem) {
  const auto finite = [](double bound) { return std::isfinite(bound); };
  const bool bounds = std::any_of(problem.lower.begin(), problem.lower.end(), finite) ||
                      std::any_of(problem.upper.begin(), problem.upper.end(), finite);
  const bool changed = bounds != bool(lower) || (bounds && lower.elements() != ambient);
  if (changed) {
    lower = bounds ? device.allocate(values.state, {ambient}) : Buffer();
    upper = bounds ? device.allocate(values.state, {ambient}) : Buffer();
  }
  if (bounds) write_numbers(device, problem.lower, lower), write_numbers(device, problem.upper, upper);
  return changed;
}

void Evaluator::State::allocate_state() {
  std::vector<uint32_t> free_flags;
  for (const uint8_t f : fixed) free_flags.push_back(!f);
  free_blocks = device.upload(free_flags);
  free_numbers = {};
  if (any_fixed) {
    std::vector<double> mask;
    for (const SetState& s : sets)
      for (int64_t b = 0; b < s.count; ++b)
        mask.insert(mask.end(), size_t(s.ambient()), fixed[size_t(s.first_block + b)] ? 0 : 1);
    free_numbers = upload_numbers(device, values.state, mask, {ambient});
  }
  x = device.allocate(values.state, {ambient});
  candidate = device.allocate(values.state, {ambient});
  cost = device.allocate(values.cost, {1});
  gradient_sum = device.allocate(storage_of(values.compute), {tangent});
  gradient =
      storage_of(values.compute) == values.real ? gradient_sum : device.allocate(values.real, {tangent});
  norm = device.allocate(values.state, {1});
}

namespace {

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(
      a, b, [](double x, double y) { return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y); });
}

}  // namespace

// While a batch is uploaded, the tables of the next ones are made and kernels are compiled; what is left of
// that continues while the first evaluation runs.
bool Evaluator::State::build_batches(const Problem::State& problem) {
  constexpr int64_t kFewInstances = 4096;  // their tables take less time than a thread's beginning
  ahead = std::make_unique<CompileAhead>(CompileAhead::threads_for(device.info()));
  EarlierBatches earlier(std::exchange(batches, {}));
  std::vector<std::shared_ptr<Piece>> pieces;
  for (const Batch& b : problem.batches) {
    if (b.instances == 0) continue;
    const auto term = derivatives_of(b);
    const bool whole = may_group(*term, b.instances);
    const int64_t most = whole || batch_size <= 0 ? b.instances : batch_size;
    for (int64_t first = 0; first < b.instances; first += most) {
      const auto piece = pieces.emplace_back(std::make_shared<Piece>());
      piece->batch = &b, piece->term = term, piece->may_group = whole;
      piece->first = first, piece->end = std::min(first + most, b.instances);
      earlier.find(*piece);
      const auto tables = [this, piece] { lay_out(*piece); };
      if (b.instances > kFewInstances) piece->work = ahead->add(tables);
      if (!whole && first == 0) compile_ahead(term, {}, true);
      if (!piece->work) tables();
    }
  }
  bool changed = false;
  for (const auto& piece : pieces) {
    if (piece->work) ahead->wait(piece->work);
    if (piece->may_group) {
      const BatchState& one = piece->batches[0];
      const bool covers = one.plan ? one.plan->covers_all : one.assembly && one.assembly->covers_all();
      compile_ahead(piece->term, {one.report.grouped, batches.empty() && covers}, true);
    }
    changed = changed || piece->kept_at != int64_t(batches.size());
    for (BatchState& batch : piece->batches) {
      upload(batch);
      batches.push_back(std::move(batch));
    }
    piece->batches.clear();
  }
  return changed || int64_t(batches.size()) != earlier.size();
}

void Evaluator::State::allocate_costs() {
  if (parts) {
    std::vector<int64_t> ends(static_cast<size_t>(layout->own.size()), 0);
    for (const BatchState& b : batches) ends[size_t(b.part)] += b.cost_count();
    for (size_t k = 1; k < ends.size(); ++k) ends[k] += ends[k - 1];
    parts->set_costs(values.cost, std::move(ends));
  }
  int64_t count = 0;
  for (const BatchState& b : batches) count += b.cost_count();
  costs = device.allocate(values.cost, {count});
  cost_sum = primitives::ChunkedSum(device, values.cost, count);
  count = 0;
  for (BatchState& b : batches) {
    b.costs = costs.rows(count, b.cost_count());
    count += b.cost_count();
  }
}

const variants::Computation& assembly_computation() {
  // The two add up in orders of their own.
  static const variants::Computation computation({.name = "solve.assembly",
                                                  .variants = {"plain", "groups"},
                                                  .axes = {"instances"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

bool Evaluator::State::may_group(const TermDerivatives& term, int64_t instances) const {
  const variants::Axis axis{"instances", double(instances)};
  const auto applies = [&](int variant) -> std::string {
    if (variant == 0 || can_assemble(term, values, derivatives, device.info().limits)) return "";
    return "a term whose blocks differ, or are too large for shared memory";
  };
  return variants::choose(assembly_computation(), device, {{}, {&axis, 1}}, assembly, applies).variant == 1;
}

BatchState Evaluator::State::take(const Batch& given, std::shared_ptr<const TermDerivatives> term,
                                  int64_t first, int64_t n) const {
  BatchState batch;
  batch.name = given.name;
  batch.n = n;
  batch.part = given.part;
  batch.term = std::move(term);
  const TermDerivatives& p = *batch.term;
  const std::vector<ConstantUse>& uses = p.constants();
  const size_t slots = given.expression->slots.size(), constants = uses.size();
  batch.report.name = given.name, batch.report.program = p.name();
  batch.report.instances = n, batch.report.residuals = given.expression->rows;

  batch.blocks.resize(slots * size_t(n));
  std::vector<double>& data = batch.numbers;
  data.resize(size_t(p.data_columns()) * size_t(n));
  const size_t own = size_t(given.expression->data);
  const auto take_instance = [&](const Segment& s, size_t i, size_t at) {
    for (size_t k = 0; k < slots; ++k) batch.blocks[k * size_t(n) + at] = s.blocks[i * slots + k];
    for (size_t k = 0; k < own; ++k) data[k * size_t(n) + at] = s.data[i * own + k];
    size_t column = own;
    if (given.expression->weighted) data[column++ * size_t(n) + at] = s.weights[i];
    for (size_t k = 0; k < constants; ++k)
      if (uses[k].where == ConstantUse::Where::column)
        data[column++ * size_t(n) + at] = s.constants[(s.own_constants ? i * constants : 0) + k];
  };
  int64_t next = -first;  // place of the next instance that counts
  for (const Segment& s : given.segments) {
    if (s.off.empty() && next + s.count <= 0) {
      next += s.count;
      continue;
    }
    int64_t i = 0;
    if (s.off.empty() && next < 0) i = -std::exchange(next, 0);
    for (; i < s.count && next < n; ++i) {
      if (!s.counts(i)) continue;
      if (next >= 0) take_instance(s, size_t(i), size_t(next));
      ++next;
    }
  }
  for (size_t k = 0; k < constants; ++k)
    if (uses[k].where == ConstantUse::Where::uniform)
      batch.uniforms.push_back(first_segment(given).constants[k]);
  return batch;
}

bool Evaluator::State::serves(const BatchState& earlier, const BatchState& instances) const {
  // Groups that have all blocks of a problem overwrite sums: that depends on blocks without instances, too.
  if (earlier.assembly && !all_stay) return false;
  return earlier.blocks == instances.blocks &&
         std::ranges::all_of(earlier.blocks, [&](int32_t block) { return stays[size_t(block)] != 0; });
}

void Evaluator::State::lay_out(Piece& piece) const {
  double begin_s = Trace::now_us() * 1e-6;
  const auto finish = [&](BatchState&& batch) {
    batch.may_group = piece.may_group;
    batch.report.tables_begin_s = begin_s, batch.report.launch_s = 0;
    begin_s = batch.report.tables_end_s = Trace::now_us() * 1e-6;
    piece.batches.push_back(std::move(batch));
  };
  BatchState whole = take(*piece.batch, piece.term, piece.first, piece.end - piece.first);
  if (piece.kept_at >= 0) {
    BatchState kept = std::exchange(piece.kept, {});
    if (serves(kept, whole)) {
      // Recorded launches have the arguments that they were recorded with.
      if (!same_bits(kept.uniforms, whole.uniforms)) piece.kept_at = -1;
      kept.numbers = std::move(whole.numbers), kept.uniforms = std::move(whole.uniforms);
      kept.name = kept.report.name = whole.name, kept.report.kept = true;
      if (kept.term != whole.term) kept.term = whole.term, kept.host->set_term(whole.term);
      return finish(std::move(kept));
    }
    piece.kept_at = -1;
  }
  if (piece.may_group && plan_groups(whole)) return finish(std::move(whole));
  const int64_t n = whole.n, most = batch_size > 0 ? batch_size : n;
  for (int64_t first = 0; first < n; first += most) {
    BatchState batch = n <= most
                           ? std::move(whole)
                           : take(*piece.batch, piece.term, piece.first + first, std::min(most, n - first));
    batch.tables = plain_tables(batch);
    finish(std::move(batch));
  }
}

bool Evaluator::State::plan_groups(BatchState& batch) const {
  const TermDerivatives& p = *batch.term;
  std::vector<int> rank, sign;
  const std::vector<int>& stored = p.classes()[0].slots;
  for (const TermDerivatives::Alias& alias : p.aliases()) {
    rank.push_back(int(std::find(stored.begin(), stored.end(), alias.slot) - stored.begin()));
    sign.push_back(alias.sign);
  }
  batch.plan = plan_assembly(batch.blocks, int(p.widths().size()), batch.n, rank, sign, fixed);
  batch.report.grouped = batch.plan.has_value();
  return batch.report.grouped;
}

PlainTables Evaluator::State::plain_tables(const BatchState& batch) const {
  const TermDerivatives& p = *batch.term;
  const int64_t n = batch.n;
  PlainTables tables;
  tables.ambient.reserve(batch.blocks.size()), tables.tangent.reserve(batch.blocks.size());
  bool same = true;
  for (const int32_t b : batch.blocks) {
    tables.ambient.push_back(int32_t(ambient_of(b))), tables.tangent.push_back(int32_t(tangent_of(b)));
    same = same && tables.ambient.back() == tables.tangent.back();
  }
  if (same) tables.tangent.clear();
  for (const TermDerivatives::SlotClass& c : p.classes()) {
    const int64_t stored = int64_t(c.slots.size());
    std::vector<Occurrence> occurrences;
    for (int64_t i = 0; i < n; ++i)
      for (size_t s = 0; s < p.widths().size(); ++s) {
        if (p.widths()[s] != c.width) continue;
        const TermDerivatives::Alias& alias = p.aliases()[s];
        const int64_t rank = std::find(c.slots.begin(), c.slots.end(), alias.slot) - c.slots.begin();
        const int32_t entry = int32_t(rank * n + i);
        const int32_t block = batch.blocks[s * size_t(n) + size_t(i)];
        occurrences.push_back({fixed[size_t(block)] ? -1 : block, alias.sign < 0 ? ~entry : entry});
      }
    PlainTables::Sums sums{
        c, plan_gather(c.width, stored * n, int64_t(fixed.size()), occurrences), {}, {}, {}, {}};
    const auto offsets = [&](const std::vector<int32_t>& blocks, PartSums::Vector vector) {
      std::vector<int32_t> offset;
      offset.reserve(blocks.size());
      for (const int32_t b : blocks) {
        const int64_t at = vector == PartSums::Vector::tangent ? tangent_of(b) : diagonal_of(b);
        offset.push_back(int32_t(parts ? parts->place(vector, at, batch.part) : at));
      }
      return offset;
    };
    sums.few_tangent = offsets(sums.plan.few_blocks, PartSums::Vector::tangent);
    sums.many_tangent = offsets(sums.plan.many_blocks, PartSums::Vector::tangent);
    sums.few_diagonal = offsets(sums.plan.few_blocks, PartSums::Vector::diagonal);
    sums.many_diagonal = offsets(sums.plan.many_blocks, PartSums::Vector::diagonal);
    tables.sums.push_back(std::move(sums));
  }
  return tables;
}

void Evaluator::State::upload(BatchState& batch) const {
  batch.report.upload_begin_s = Trace::now_us() * 1e-6;
  const int64_t before = device.counters().bytes_to_device;
  if (batch.plan)
    batch.assembly =
        std::make_shared<Assembly>(device, batch.term, values, derivatives, std::move(*batch.plan),
                                   batch.numbers, batch.n, batch.uniforms,
                                   Assembly::Offsets{[this](int64_t b) { return ambient_of(b); },
                                                     [this](int64_t b) { return tangent_of(b); },
                                                     [this](int64_t b) { return diagonal_of(b); }});
  else if (batch.tables)
    upload_plain(batch, *batch.tables);
  else
    upload_numbers_of(batch);
  if (batch.plan || batch.tables) batch.report.bytes = device.counters().bytes_to_device - before;
  batch.plan.reset(), batch.tables.reset();
  batch.report.upload_end_s = Trace::now_us() * 1e-6;
}

void Evaluator::State::upload_numbers_of(BatchState& batch) const {
  if (batch.assembly) batch.assembly->set_numbers(batch.numbers, batch.n, batch.uniforms);
  if (batch.host) batch.host->set_numbers(batch.numbers, batch.uniforms);
  if (batch.data) write_numbers(device, batch.numbers, batch.data);
  if (batch.ambient_at) batch.numbers = {};
}

void Evaluator::State::upload_plain(BatchState& batch, const PlainTables& tables) const {
  const TermDerivatives& p = *batch.term;
  const int64_t n = batch.n, slots = int64_t(p.widths().size());
  if (p.host()) {
    batch.host = std::make_shared<HostInstances>(
        batch.term,
        HostInstances::Layout{n, tables.ambient, tables.tangent.empty() ? tables.ambient : tables.tangent,
                              batch.numbers, batch.uniforms});
  } else if (!batch.numbers.empty())
    batch.data = upload_numbers(device, values.state, batch.numbers, {p.data_columns(), n});
  batch.ambient_at = device.upload(std::span<const int32_t>(tables.ambient), {slots, n});
  batch.tangent_at = tables.tangent.empty()
                         ? batch.ambient_at
                         : device.upload(std::span<const int32_t>(tables.tangent), {slots, n});
  const auto offsets = [&](const std::vector<int32_t>& at) {
    return at.empty() ? Buffer() : device.upload(at);
  };
  for (const PlainTables::Sums& s : tables.sums)
    batch.sums.push_back({s.slots, Gather(device, s.plan), offsets(s.few_tangent), offsets(s.many_tangent),
                          offsets(s.few_diagonal), offsets(s.many_diagonal)});
  batch.numbers = {};
}

void Evaluator::State::share_scratch() {
  const bool same = storage_of(values.compute) == values.real;
  int64_t slots = 0, diagonals = 0;
  for (const BatchState& b : batches) {
    if (!b.ambient_at) continue;
    slots = std::max(slots, b.term->slot_rows() * b.n);
    if (block_diagonal && (wants_diagonal() || b.term->energy()))
      diagonals = std::max(diagonals, b.term->diagonal_rows() * b.n);
  }
  const auto grow = [&](Buffer& scratch, Storage storage, int64_t elements) {
    if (elements > 0 && (!scratch || scratch.elements() < elements))
      scratch = device.allocate(storage, {elements});
  };
  grow(gradient_scratch, storage_of(values.compute), slots);
  if (same)
    slot_scratch = gradient_scratch;
  else
    grow(slot_scratch, values.real, slots);
  grow(diagonal_scratch, values.real, diagonals);
  const auto view = [](const Buffer& scratch, int64_t rows, int64_t n) {
    return scratch.rows(0, rows * n).reshape({rows, n});
  };
  for (BatchState& b : batches) {
    if (!b.ambient_at) continue;
    b.gradient_slots = view(gradient_scratch, b.term->slot_rows(), b.n);
    b.slots = view(slot_scratch, b.term->slot_rows(), b.n);
    if (diagonal_scratch && (wants_diagonal() || b.term->energy()))
      b.diagonal_slots = view(diagonal_scratch, b.term->diagonal_rows(), b.n);
  }
}

bool Evaluator::State::compiled_before(std::string_view what, uint64_t variant) const {
  constexpr size_t kMost = 65536;
  static Mutex guard;
  static std::unordered_set<uint64_t> seen;
  uint64_t key = std::hash<std::string_view>()(what) ^ reinterpret_cast<uintptr_t>(&device.info());
  for (const uint64_t part : {variant, uint64_t(uses), uint64_t(values.compute), uint64_t(values.real)})
    key = (key ^ part) * 0x9e3779b97f4a7c15ull, key ^= key >> 29;
  const std::lock_guard lock(guard);
  if (seen.size() > kMost) seen.clear();
  return !seen.insert(key).second && !fresh_device;  // a new device may have the address of an old one
}

void Evaluator::State::compile_ahead(const std::shared_ptr<const TermDerivatives>& term,
                                     const Grouping& grouping, bool first) const {
  if (term->host()) return;
  if (compiled_before(term->key(),
                      uint64_t(grouping.grouped) | uint64_t(grouping.overwrites) << 1 | uint64_t(first) << 2))
    return;
  const auto instances = [&](const ElementTypes& types, unsigned outputs) {
    for (const auto& make : instance_kernels(term, types, outputs)) compile(make);
  };
  const bool grouped = grouping.grouped;
  const auto grouped_kernels = [&](Assembled which) {
    const bool sets = grouping.overwrites && (which == Assembled::gradient || which == Assembled::product);
    for (const auto& make : Assembly::kernels(term, which, which < Assembled::diagonal ? values : derivatives,
                                              sets, Assembly::by_records(device)))
      compile(make);
  };
  const bool same = values.compute == derivatives.compute;
  const bool linearize = uses & kUseLinearize, gradient = uses & kUseGradient;
  if (first) {
    if (grouped) {
      if (linearize || gradient) grouped_kernels(Assembled::gradient);
      if (linearize) grouped_kernels(Assembled::diagonal);
      return;
    }
    const unsigned derived = kJacobian | kDiagonal, wanted = linearized_outputs();
    if (linearize) instances(values, kCost | kGradient | (wanted & (same ? ~0u : ~derived)));
    if (linearize && !same) instances(derivatives, wanted & derived);
    if (gradient) instances(values, kCost | kGradient);
    return;
  }
  if (linearize && grouped) grouped_kernels(Assembled::value);
  if (linearize && !grouped) instances(values, kCost);
  if (uses & kUseHost) {
    if (term->energy() || grouped || !linearize) instances(values, term->energy() ? kGradient : kResiduals);
    if (grouped) instances(derivatives, kJacobian);
  }
  if (!(uses & kUseProduct)) return;
  if (grouped)
    grouped_kernels(Assembled::product);
  else
    compile([term, real = values.real] { return product_kernel(term, real, {}); });
}

void Evaluator::State::compile_sums() const {
  if (uses == 0) return;
  const Storage wide = storage_of(values.compute), real = values.real;
  const auto all = [&](const std::vector<std::function<Kernel()>>& kernels) {
    for (const auto& make : kernels) compile(make);
  };
  for (const BatchState& batch : batches)
    for (const ClassSums& c : batch.sums) {
      const int width = c.slots.width;
      if (host && !wants_diagonal()) break;
      if (compiled_before(c.gather.has_many() ? "few and many" : "few", uint64_t(width))) continue;
      all(c.gather.kernels(wide, width, true));
      if ((uses & kUseLinearize) && wants_diagonal())
        all(c.gather.kernels(real, diagonal_parts(width), false));
      if ((uses & kUseProduct) && real != wide) all(c.gather.kernels(real, width, true));
    }
  if (!host) all(cost_sum.kernels(values.cost));
  bool known = true;
  for (const SetState& set : sets) known = compiled_before(set.manifold->key, uint64_t(bool(lower))) && known;
  if (!known) all(state_kernels());
}

void Evaluator::State::compile(std::function<Kernel()> make) const {
  ahead->add([device = device, make = std::move(make)] { device.prepare(make()); });
}

void Evaluator::State::allocate_derivatives() {
  if (block_diagonal) return;
  block_diagonal = device.allocate(values.real, {diagonal_size});
  diagonal = device.allocate(values.real, {tangent});
  for (BatchState& batch : batches) {
    if (batch.assembly || batch.jacobian || batch.residuals) continue;
    if (batch.term->stored_count() > 0)
      batch.jacobian = device.allocate(values.real, {batch.term->stored_count(), batch.n});
    if ((uses & kUseHost) && !batch.term->energy())
      batch.residuals = device.allocate(storage_of(values.compute), {batch.term->rows(), batch.n});
  }
  share_scratch();
}

void Evaluator::State::ensure_jacobian() {
  if (jacobian_current) return;
  for (BatchState& batch : batches) {
    if (!batch.assembly) continue;
    if (!batch.ambient_at) {
      upload_plain(batch, plain_tables(batch));
      share_scratch();
    }
    if (!batch.jacobian) {
      if (batch.term->stored_count() > 0)
        batch.jacobian = device.allocate(values.real, {batch.term->stored_count(), batch.n});
    }
    launch_instances(batch, x, derivatives, kJacobian);
  }
  jacobian_current = true;
}

void Evaluator::State::prepare_plain() {
  for (BatchState& batch : batches) {
    if (batch.ambient_at) continue;
    upload_plain(batch, plain_tables(batch));
    share_scratch();
  }
}

void Evaluator::State::note_launch(const BatchState& batch) const {
  if (ahead) ahead->check();
  if (batch.report.launch_s == 0) batch.report.launch_s = Trace::now_us() * 1e-6;
}

}  // namespace lockstep::solve
