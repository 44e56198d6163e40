// Laying a problem out on a device: batches, index tables, constants, sums.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "solve/evaluator_state.hpp"

namespace lockstep::solve {

Buffer upload_numbers(const Device& device, Storage storage, std::span<const double> numbers, Shape shape) {
  if (storage == Storage::f64) return device.upload(numbers, shape);
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  return device.upload(std::span<const float>(narrow), shape);
}

std::vector<double> download_numbers(const Device& device, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) return device.download<double>(buffer);
  const std::vector<float> narrow = device.download<float>(buffer);
  return {narrow.begin(), narrow.end()};
}

const SetState& Evaluator::State::set_of(int64_t block) const {
  const auto next = std::upper_bound(sets.begin(), sets.end(), block,
                                     [](int64_t b, const SetState& s) { return b < s.first_block; });
  return *(next - 1);
}
int64_t Evaluator::State::ambient_of(int64_t block) const {
  const SetState& s = set_of(block);
  return s.first_ambient + (block - s.first_block) * s.ambient();
}
int64_t Evaluator::State::tangent_of(int64_t block) const {
  const SetState& s = set_of(block);
  return s.first_tangent + (block - s.first_block) * s.tangent();
}
int64_t Evaluator::State::diagonal_of(int64_t block) const {
  const SetState& s = set_of(block);
  const int64_t width = s.tangent();
  return first_diagonal[size_t(&s - sets.data())] + (block - s.first_block) * (width * (width + 1) / 2);
}

namespace {

bool assembly_wanted = true;

/// Numbers that simplify an expression stay literals where all instances have them.
bool simplifies(double number) {
  for (const double n : {0.0, 1.0, 2.0, 0.5})
    if (number == n || number == -n) return true;
  return false;
}

std::vector<ConstantUse> uses_of(const Batch& batch) {
  constexpr int kMostUniforms = 32;
  const size_t count = size_t(batch.topology->constants);
  std::vector<ConstantUse> uses(count);
  int uniforms = 0;
  for (size_t k = 0; k < count; ++k) {
    const double value = batch.segments[0].constants[k];
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

Buffer upload_offsets(const Device& device, const std::vector<int32_t>& blocks,
                      const std::function<int64_t(int64_t)>& offset) {
  if (blocks.empty()) return {};
  std::vector<int32_t> at;
  at.reserve(blocks.size());
  for (const int32_t b : blocks) at.push_back(int32_t(offset(b)));
  return device.upload(at);
}

}  // namespace

std::shared_ptr<const Program> program_of(const Batch& batch) {
  return std::make_shared<const Program>(batch.topology, uses_of(batch));
}

void set_assembly(bool wanted) { assembly_wanted = wanted; }

void Evaluator::State::build(const Problem::State& problem) {
  sets = problem.sets;
  fixed = problem.fixed;
  ambient = problem.ambient, tangent = problem.tangent;
  any_fixed = std::find(fixed.begin(), fixed.end(), 1) != fixed.end();
  if (ambient == 0) throw InputError("a problem without blocks", "solve evaluator", "one block or more");
  int64_t instances = 0;
  for (const Batch& b : problem.batches) instances += b.instances;
  if (instances == 0)
    throw InputError("a problem without residuals", "solve evaluator", "one instance or more");
  for (const SetState& s : sets) {
    first_diagonal.push_back(diagonal_size);
    diagonal_size += s.count * (s.tangent() * (s.tangent() + 1) / 2);
  }
  if (diagonal_size > INT32_MAX)
    throw InputError(fmt::format("{} numbers in the blocks of J^T J", diagonal_size), "solve evaluator",
                     fmt::format("at most {}", INT32_MAX));

  std::vector<uint32_t> free_flags;
  for (const uint8_t f : fixed) free_flags.push_back(!f);
  free_blocks = device.upload(free_flags);
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
  int64_t count = 0;
  for (const Batch& b : problem.batches) {
    if (b.instances == 0) continue;
    build_batch(b);
    count += batches.back().cost_count();
  }
  costs = device.allocate(values.cost, {count});
  cost_sum = FixedSum(device, values.cost, count);
  count = 0;
  for (BatchState& b : batches) {
    b.costs = costs.rows(count, b.cost_count());
    count += b.cost_count();
  }
}

void Evaluator::State::build_batch(const Batch& given) {
  BatchState batch;
  batch.name = given.name;
  batch.n = given.instances;
  batch.program = program_of(given);
  const Program& p = *batch.program;
  const std::vector<ConstantUse>& uses = p.constants();
  const int64_t n = batch.n;
  const size_t slots = given.topology->slots.size(), constants = uses.size();

  batch.blocks.resize(slots * size_t(n));
  std::vector<double>& data = batch.numbers;
  data.resize(size_t(p.data_columns()) * size_t(n));
  int64_t first = 0;
  for (const Segment& s : given.segments) {
    for (int64_t i = 0; i < s.count; ++i) {
      const size_t at = size_t(first + i);
      for (size_t k = 0; k < slots; ++k) batch.blocks[k * size_t(n) + at] = s.blocks[size_t(i) * slots + k];
      const size_t own = size_t(given.topology->data);
      for (size_t k = 0; k < own; ++k) data[k * size_t(n) + at] = s.data[size_t(i) * own + k];
      size_t column = own;
      for (size_t k = 0; k < constants; ++k)
        if (uses[k].where == ConstantUse::Where::column)
          data[column++ * size_t(n) + at] = s.constants[(s.own_constants ? size_t(i) * constants : 0) + k];
    }
    first += s.count;
  }
  for (size_t k = 0; k < constants; ++k)
    if (uses[k].where == ConstantUse::Where::uniform)
      batch.uniforms.push_back(given.segments[0].constants[k]);
  build_assembly(batch);
  if (!batch.assembly) build_plain(batch);
  batches.push_back(std::move(batch));
}

void Evaluator::State::build_assembly(BatchState& batch) {
  constexpr int64_t kFewest = 1024;  // instances
  const Program& p = *batch.program;
  if (!assembly_wanted || batch.n < kFewest || !can_assemble(p, values, derivatives, device.info().limits))
    return;
  std::vector<int> rank, sign;
  const std::vector<int>& stored = p.classes()[0].slots;
  for (const Program::Alias& alias : p.aliases()) {
    rank.push_back(int(std::find(stored.begin(), stored.end(), alias.slot) - stored.begin()));
    sign.push_back(alias.sign);
  }
  auto plan = plan_assembly(batch.blocks, int(p.widths().size()), batch.n, rank, sign, fixed);
  if (!plan) return;
  batch.assembly = std::make_shared<const Assembly>(
      device, batch.program, values, derivatives, std::move(*plan), batch.numbers, batch.n, batch.uniforms,
      Assembly::Offsets{[&](int64_t b) { return ambient_of(b); }, [&](int64_t b) { return tangent_of(b); },
                        [&](int64_t b) { return diagonal_of(b); }});
}

void Evaluator::State::build_plain(BatchState& batch) {
  const Program& p = *batch.program;
  const int64_t n = batch.n, slots = int64_t(p.widths().size());
  if (!batch.numbers.empty())
    batch.data = upload_numbers(device, values.state, batch.numbers, {p.data_columns(), n});
  std::vector<int32_t> at_ambient, at_tangent;
  at_ambient.reserve(batch.blocks.size()), at_tangent.reserve(batch.blocks.size());
  bool same = true;
  for (const int32_t b : batch.blocks) {
    at_ambient.push_back(int32_t(ambient_of(b))), at_tangent.push_back(int32_t(tangent_of(b)));
    same = same && at_ambient.back() == at_tangent.back();
  }
  batch.ambient_at = device.upload(std::span<const int32_t>(at_ambient), {slots, n});
  batch.tangent_at =
      same ? batch.ambient_at : device.upload(std::span<const int32_t>(at_tangent), {slots, n});
  batch.gradient_slots = device.allocate(storage_of(values.compute), {p.slot_rows(), n});
  batch.slots = storage_of(values.compute) == values.real ? batch.gradient_slots
                                                          : device.allocate(values.real, {p.slot_rows(), n});
  build_sums(batch);
}

void Evaluator::State::build_sums(BatchState& batch) {
  const Program& p = *batch.program;
  const int64_t n = batch.n;
  for (const Program::SlotClass& c : p.classes()) {
    const int64_t stored = int64_t(c.slots.size());
    std::vector<Occurrence> occurrences;
    for (int64_t i = 0; i < n; ++i)
      for (size_t s = 0; s < p.widths().size(); ++s) {
        if (p.widths()[s] != c.width) continue;
        const Program::Alias& alias = p.aliases()[s];
        const int64_t rank = std::find(c.slots.begin(), c.slots.end(), alias.slot) - c.slots.begin();
        const int32_t entry = int32_t(rank * n + i);
        const int32_t block = batch.blocks[s * size_t(n) + size_t(i)];
        occurrences.push_back({fixed[size_t(block)] ? -1 : block, alias.sign < 0 ? ~entry : entry});
      }
    const GatherPlan plan = plan_gather(c.width, stored * n, int64_t(fixed.size()), occurrences);
    const auto tangent_offset = [&](int64_t b) { return tangent_of(b); };
    const auto diagonal_offset = [&](int64_t b) { return diagonal_of(b); };
    batch.sums.push_back({c, Gather(device, plan), upload_offsets(device, plan.few_blocks, tangent_offset),
                          upload_offsets(device, plan.many_blocks, tangent_offset),
                          upload_offsets(device, plan.few_blocks, diagonal_offset),
                          upload_offsets(device, plan.many_blocks, diagonal_offset)});
  }
}

void Evaluator::State::allocate_derivatives() {
  if (block_diagonal) return;
  block_diagonal = device.allocate(values.real, {diagonal_size});
  diagonal = device.allocate(values.real, {tangent});
  for (BatchState& batch : batches) {
    if (batch.assembly) continue;
    if (!batch.program->stored().empty())
      batch.jacobian = device.allocate(values.real, {int64_t(batch.program->stored().size()), batch.n});
    batch.diagonal_slots = device.allocate(values.real, {batch.program->diagonal_rows(), batch.n});
  }
}

void Evaluator::State::ensure_jacobian() {
  if (jacobian_current) return;
  for (BatchState& batch : batches) {
    if (!batch.assembly) continue;
    if (!batch.ambient_at) {
      build_plain(batch);
      if (!batch.program->stored().empty())
        batch.jacobian = device.allocate(values.real, {int64_t(batch.program->stored().size()), batch.n});
    }
    launch_instances(batch, x, derivatives, kJacobian);
  }
  jacobian_current = true;
}

}  // namespace lockstep::solve
