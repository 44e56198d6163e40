#include "solve/evaluate/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/primitives.hpp"
#include "optimize/vectors.hpp"
#include "solve/evaluate/assembly/hessian.hpp"
#include "solve/evaluate/evaluator_state.hpp"

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

void write_numbers(const Device& device, std::span<const double> numbers, const Buffer& to) {
  if (to.storage() == Storage::f64) return device.write(to, numbers.data(), to.bytes());
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  device.write(to, narrow.data(), to.bytes());
}

namespace {

Kernel convert_kernel(Storage from, Storage to) {
  const std::string name = fmt::format("solve.convert.{}.{}", lockstep::name(from), lockstep::name(to));
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid x = p.read("x", from, 1), y = p.write("y", to, 1);
      y.store({at.x}, x.load({at.x}));
    });
  });
}

/// Sets candidates to the bound if a step crosses it or reaches it up to the rounding of the step.
/// A step is narrower than a state of mixed precision: x + (bound - x) would miss the bound each time.
Kernel bounds_kernel(Storage state, Storage real) {
  const std::string name = fmt::format("solve.bounds.{}.{}", lockstep::name(state), lockstep::name(real));
  const double rounding = real == Storage::f64 ? std::numeric_limits<double>::epsilon()
                                               : double(std::numeric_limits<float>::epsilon());
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid x = p.read("state", state, 1);
      const AnyGrid lower = p.read("lower", state, 1), upper = p.read("upper", state, 1);
      const AnyGrid candidate = p.read_write("candidate", state, 1);
      const AnyVal from = x.load({at.x}), to = candidate.load({at.x});
      const AnyVal low = lower.load({at.x}), high = upper.load({at.x});
      const AnyVal near = (abs(from) + abs(to)) * (4 * rounding);
      const AnyVal below = select((to < from) & (to - low <= near), low, to);
      candidate.store({at.x}, select((to > from) & (high - to <= near), high, below));
    });
  });
}

/// The diagonals of upper triangles, a lane a block.
Kernel diagonal_kernel(Storage storage, int width) {
  const std::string name = fmt::format("solve.diagonal.{}.{}", lockstep::name(storage), width);
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid blocks = p.read("blocks", storage, 2), diagonal = p.write("diagonal", storage, 2);
      for (int c = 0; c < width; ++c)
        diagonal.store({at.x, c}, blocks.load({at.x, c * width - c * (c - 1) / 2}));
    });
  });
}

void launch(const Device& device, const Kernel& kernel, int64_t extent, const Arguments& arguments) {
  if (extent > 0) device.launch(kernel, {extent}, arguments);
}

/// Those of `outputs` that the instances' kernel writes, and whether Hessians come column by column.
struct InstanceOutputs {
  unsigned outputs = 0;
  bool columns = false;
};
InstanceOutputs outputs_of(const TermDerivatives& p, unsigned outputs) {
  if (p.stored_count() == 0) outputs &= ~unsigned(kJacobian);
  if (p.energy()) outputs &= ~unsigned(kDiagonal | kResiduals);
  const bool columns = !p.hessian_product().empty() && (outputs & kJacobian);
  if (columns) outputs &= ~unsigned(kJacobian);
  return {outputs, columns};
}

}  // namespace

std::vector<std::function<Kernel()>> instance_kernels(const std::shared_ptr<const TermDerivatives>& term,
                                                      const ElementTypes& types, unsigned outputs) {
  const InstanceOutputs wanted = outputs_of(*term, outputs);
  std::vector<std::function<Kernel()>> kernels;
  if (wanted.columns) kernels.push_back([=] { return hessian_kernel(term, types); });
  if (wanted.outputs) kernels.push_back([=] { return instance_kernel(term, types, wanted.outputs); });
  return kernels;
}

Arguments Evaluator::State::instance_arguments(const BatchState& batch, const Buffer& state,
                                               const ElementTypes& types) const {
  Arguments arguments;
  arguments.set("state", state).set("blocks", batch.ambient_at);
  if (batch.data) arguments.set("data", batch.data);
  set_uniforms(arguments, batch.uniforms, types);
  return arguments;
}

void Evaluator::State::compute_instances(const BatchState& batch, const Buffer& state,
                                         unsigned outputs) const {
  const std::vector<double> at = download_numbers(device, state);
  for (const auto& [output, to] : {std::pair(kCost, &batch.costs),
                                   {kGradient, &batch.gradient_slots},
                                   {kJacobian, &batch.jacobian},
                                   {kDiagonal, &batch.diagonal_slots},
                                   {kResiduals, &batch.residuals}})
    if (outputs & output) write_numbers(device, host_output(batch, at, output), *to);
}

std::vector<double> Evaluator::State::host_output(const BatchState& batch, std::span<const double> at,
                                                  Output which) const {
  const bool derivatives = which & (kGradient | kJacobian | kDiagonal);
  if (prepare && ((derivatives && !prepared_derivatives) || !std::ranges::equal(at, prepared_at))) {
    prepared_at.clear();
    prepare(at, derivatives);
    prepared_at.assign(at.begin(), at.end()), prepared_derivatives = derivatives;
  }
  return batch.host->output(at, which);
}

void Evaluator::State::launch_instances(const BatchState& batch, const Buffer& state,
                                        const ElementTypes& types, unsigned outputs) const {
  if (batch.host) return compute_instances(batch, state, outputs);
  const InstanceOutputs wanted = outputs_of(*batch.term, outputs);
  if (batch.n == 0) return;
  if (wanted.columns)
    device.launch(hessian_kernel(batch.term, types), {batch.term->columns(), batch.n},
                  instance_arguments(batch, state, types).set("hessian", batch.jacobian));
  if (wanted.outputs == 0) return;
  Arguments arguments = instance_arguments(batch, state, types);
  if (wanted.outputs & kCost) arguments.set("cost", batch.costs);
  if (wanted.outputs & kGradient) arguments.set("gradient", batch.gradient_slots);
  if (wanted.outputs & kJacobian) arguments.set("jacobian", batch.jacobian);
  if (wanted.outputs & kDiagonal) arguments.set("diagonal", batch.diagonal_slots);
  if (wanted.outputs & kResiduals) arguments.set("residuals", batch.residuals);
  device.launch(instance_kernel(batch.term, types, wanted.outputs), {batch.n}, arguments);
}

void Evaluator::State::launch_cost(const Buffer& state) const {
  for (const BatchState& batch : batches) {
    note_launch(batch);
    if (batch.assembly)
      batch.assembly->run(Assembled::value, state, {}, batch.costs, {}, false);
    else
      launch_instances(batch, state, values, kCost);
  }
}

void Evaluator::State::sum_slots(const BatchState& batch, const Buffer& slots, const Buffer& target) const {
  for (const ClassSums& c : batch.sums) {
    const int64_t stored = int64_t(c.slots.slots.size());
    c.gather.add(
        slots.rows(c.slots.first_row, c.slots.width * stored).reshape({c.slots.width, stored * batch.n}),
        c.slots.width, true, c.few_tangent, c.many_tangent, target);
  }
}

Buffer Evaluator::State::begin_sum(PartSums::Vector vector, const Buffer& to) const {
  if (parts) return parts->zeros(vector, to.storage());
  device.clear(to);
  return to;
}
void Evaluator::State::end_sum(PartSums::Vector vector, const Buffer& sums, const Buffer& to,
                               bool exchanged) const {
  if (parts) parts->sum(vector, sums, to, exchanged);
}

void Evaluator::State::launch_gradient(const Buffer& state, bool with_derivatives) const {
  const bool same = values.compute == derivatives.compute;
  const bool overwrite = batches[0].assembly && batches[0].assembly->covers_all();
  const Buffer sum = overwrite ? gradient_sum : begin_sum(PartSums::Vector::tangent, gradient_sum);
  const bool with_diagonal = with_derivatives && wants_diagonal();
  const Buffer diagonals = with_diagonal ? begin_sum(PartSums::Vector::diagonal, block_diagonal) : Buffer();
  for (const BatchState& batch : batches) {
    note_launch(batch);
    if (batch.assembly) {
      batch.assembly->run(Assembled::gradient, state, {}, batch.costs, gradient_sum,
                          overwrite && &batch == &batches[0]);
      continue;
    }
    const unsigned wanted = with_derivatives ? linearized_outputs() : 0;
    const unsigned derived = kJacobian | kDiagonal;
    launch_instances(batch, state, values, kCost | kGradient | (wanted & (same ? ~0u : ~derived)));
    if (!same && with_derivatives) launch_instances(batch, state, derivatives, wanted & derived);
    sum_slots(batch, batch.gradient_slots, sum);
    if (with_diagonal)
      sum_diagonal_slots(batch, diagonals);
    else if (with_derivatives && batch.term->energy())
      project_hessians(device, batch.term, batch.jacobian, batch.diagonal_slots);
  }
  end_sum(PartSums::Vector::tangent, sum, gradient_sum);
  if (with_diagonal) end_sum(PartSums::Vector::diagonal, diagonals, block_diagonal);
  if (gradient_sum.storage() != gradient.storage())
    launch(device, convert_kernel(gradient_sum.storage(), gradient.storage()), tangent,
           Arguments().set("x", gradient_sum).set("y", gradient));
}

unsigned Evaluator::State::linearized_outputs() const {
  return kJacobian | (wants_diagonal() ? unsigned(kDiagonal) : 0u) |
         (uses & kUseHost ? unsigned(kResiduals) : 0u);
}

void Evaluator::State::sum_diagonal_slots(const BatchState& batch, const Buffer& target) const {
  if (batch.term->energy()) project_hessians(device, batch.term, batch.jacobian, batch.diagonal_slots);
  for (const ClassSums& c : batch.sums) {
    const int parts = diagonal_parts(c.slots.width);
    const int64_t stored = int64_t(c.slots.slots.size());
    c.gather.add(
        batch.diagonal_slots.rows(c.slots.first_diagonal, parts * stored).reshape({parts, stored * batch.n}),
        parts, false, c.few_diagonal, c.many_diagonal, target);
  }
}

void Evaluator::State::sum_diagonal() const {
  for (const BatchState& batch : batches)
    if (batch.assembly) batch.assembly->run(Assembled::diagonal, x, {}, {}, block_diagonal, false);
  for (size_t k = 0; k < sets.size(); ++k) {
    const SetState& set = sets[k];
    const int width = set.tangent(), parts = diagonal_parts(width);
    if (set.count == 0) continue;
    const Buffer blocks = block_diagonal.rows(first_diagonal[k], set.count * parts),
                 own = diagonal.rows(set.first_tangent, set.count * width);
    if (parts == width)
      device.copy(blocks, own);
    else
      launch(device, diagonal_kernel(values.real, width), set.count,
             Arguments()
                 .set("blocks", blocks.reshape({set.count, parts}))
                 .set("diagonal", own.reshape({set.count, width})));
  }
}

void Evaluator::State::sum_cost() const {
  if (parts) return parts->sum_costs(costs, cost);
  cost_sum.launch(costs, cost);
}

double Evaluator::State::read_cost() const { return download_numbers(device, cost)[0]; }

Evaluator::Evaluator(const Problem& problem, const Device& device, Precision precision,
                     const EvaluatorOptions& options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.device = device;
  const DeviceCounters earlier = device.counters();
  s.fresh_device = earlier.kernels_compiled + earlier.cache_hits == 0;
  s.precision = precision;
  const bool wide = device.info().limits.f64;
  if (precision != Precision::f32 && !wide)
    throw UnsupportedError(fmt::format("64-bit numbers on {}", device.info().name), "solve evaluator",
                           "precision f32, or a device with f64");
  const Type compute = precision == Precision::f32 ? Type::f32 : Type::f64;
  const Storage real = precision == Precision::f64 ? Storage::f64 : Storage::f32;
  s.values = {compute, storage_of(compute), real, wide ? Storage::f64 : Storage::f32};
  s.derivatives = s.values;
  s.derivatives.compute = value_type(real);
  s.batch_size = options.batch_size, s.uses = options.uses;
  s.assembly = options.assembly, s.sums = options.sums;
  s.layout = options.parts;
  if (s.layout) s.assembly = "plain", s.sums = "device";  // whose sums have a place for each part
  s.build(problem.state());
  set_state(problem.state().values);
}
Evaluator::~Evaluator() = default;

void Evaluator::update(const Problem& problem) {
  if (state_->layout) throw InternalError("a problem in parts", "solve evaluator update", "a problem in one");
  state_->build(problem.state());
  set_state(problem.state().values);
}
void Evaluator::set_prepare(Prepare prepare) {
  state_->prepare = std::move(prepare), state_->prepared_at.clear();
}
void Evaluator::rest() {
  set_prepare({});
  state_->ahead = std::make_unique<CompileAhead>(0);
}
int64_t Evaluator::bytes() const {
  const State& s = *state_;
  int64_t sum = scratch_bytes() + 8 * (4 * s.ambient + 4 * s.tangent + 2 * s.diagonal_size);
  for (const BatchReport& report : batch_reports()) sum += report.bytes;
  for (const BatchState& batch : s.batches)
    sum += int64_t(4 * batch.blocks.size() + 8 * (batch.columns.size() + batch.numbers.size()));
  return sum;
}

const Device& Evaluator::device() const { return state_->device; }
Storage Evaluator::real() const { return state_->values.real; }
int64_t Evaluator::ambient_size() const { return state_->ambient; }
int64_t Evaluator::tangent_size() const { return state_->tangent; }
int64_t Evaluator::batch_count() const { return int64_t(state_->batches.size()); }
const Buffer& Evaluator::gradient() const { return state_->gradient; }
const Buffer& Evaluator::diagonal() const { return state_->diagonal; }

void Evaluator::set_state(std::span<const double> ambient) {
  State& s = *state_;
  if (int64_t(ambient.size()) != s.ambient)
    throw InputError(fmt::format("{} numbers", ambient.size()), "solve evaluator set_state",
                     fmt::format("{}", s.ambient));
  s.jacobian_current = s.residuals_current = false;
  if (s.values.state == Storage::f64) {
    s.device.write(s.x, ambient.data(), s.x.bytes());
  } else {
    const std::vector<float> narrow(ambient.begin(), ambient.end());
    s.device.write(s.x, narrow.data(), s.x.bytes());
  }
}
std::vector<double> Evaluator::state() const { return download_numbers(state_->device, state_->x); }

double Evaluator::cost() {
  state_->launch_cost(state_->x);
  state_->sum_cost();
  return state_->read_cost();
}

void Evaluator::launch_value_and_gradient() {
  state_->launch_gradient(state_->x, false);
  state_->sum_cost();
}

double Evaluator::value_and_gradient() {
  launch_value_and_gradient();
  return state_->read_cost();
}

double Evaluator::linearize() {
  State& s = *state_;
  s.allocate_derivatives();
  s.jacobian_current = false;
  s.residuals_current = s.uses & kUseHost;
  if (s.host) return s.host->linearize();
  s.launch_gradient(s.x, true);
  if (s.wants_diagonal()) s.sum_diagonal();
  s.sum_cost();
  return s.read_cost();
}

void Evaluator::State::multiply(const Buffer& p, const Buffer& q, std::span<const SlotMask> masks,
                                bool exchanged) const {
  const bool overwrite = masks.empty() && batches[0].assembly && batches[0].assembly->covers_all();
  const Buffer sum = overwrite ? q : begin_sum(PartSums::Vector::tangent, q);
  for (size_t k = 0; k < batches.size(); ++k) {
    const BatchState& batch = batches[k];
    if (masks.empty() && batch.assembly) {
      batch.assembly->run(Assembled::product, x, p, {}, q, overwrite && k == 0);
      continue;
    }
    const SlotMask mask = masks.empty() ? SlotMask() : masks[k];
    if (mask.inputs == 0 || mask.outputs == 0) continue;
    if (batch.host) {
      write_numbers(device,
                    batch.host->product(download_numbers(device, x), download_numbers(device, p), mask),
                    batch.slots);
    } else {
      Arguments arguments;
      arguments.set("p", p).set("blocks", batch.tangent_at).set("slots", batch.slots);
      if (batch.term->stored_count() > 0) arguments.set("jacobian", batch.jacobian);
      launch(device, product_kernel(batch.term, values.real, mask), batch.n, arguments);
    }
    for (const ClassSums& c : batch.sums) {
      const auto& slots = c.slots.slots;
      if (std::none_of(slots.begin(), slots.end(),
                       [&](int s) { return batch.term->serves(s, mask.outputs); }))
        continue;
      const int64_t stored = int64_t(slots.size());
      c.gather.add(batch.slots.rows(c.slots.first_row, c.slots.width * stored)
                       .reshape({c.slots.width, stored * batch.n}),
                   c.slots.width, true, c.few_tangent, c.many_tangent, sum);
    }
  }
  end_sum(PartSums::Vector::tangent, sum, q, exchanged);
}

void Evaluator::multiply(const Buffer& p, const Buffer& q) const {
  if (state_->host) return state_->host->multiply(p, q);
  state_->multiply(p, q, {});
}

void Evaluator::State::launch_retract(const Buffer& step) const {
  for (const SetState& set : sets) {
    const auto part = [&](const Buffer& b, int64_t first, int size) {
      return b.rows(first, set.count * size).reshape({set.count, size});
    };
    if (set.count == 0) continue;
    const Kernel kernel = retract_kernel(set.manifold, values.state, values.real);
    const Shape lanes =
        retracts_by_number(*set.manifold) ? Shape{set.count, set.ambient()} : Shape{set.count};
    device.launch(kernel, lanes,
                  Arguments()
                      .set("state", part(x, set.first_ambient, set.ambient()))
                      .set("step", part(step, set.first_tangent, set.tangent()))
                      .set("free", free_blocks.rows(set.first_block, set.count))
                      .set("candidate", part(candidate, set.first_ambient, set.ambient())));
  }
  if (lower)
    launch(device, bounds_kernel(values.state, values.real), ambient,
           Arguments().set("state", x).set("lower", lower).set("upper", upper).set("candidate", candidate));
}

std::vector<std::function<Kernel()>> Evaluator::State::state_kernels() const {
  std::vector<std::function<Kernel()>> kernels;
  const Storage wide = storage_of(values.compute), real = values.real;
  if (wide != real) kernels.push_back([=] { return convert_kernel(wide, real); });
  if (lower) kernels.push_back([state = values.state, real] { return bounds_kernel(state, real); });
  for (const SetState& set : sets) {
    if (set.count == 0) continue;
    if ((uses & kUseLinearize) && diagonal_parts(set.tangent()) > set.tangent())
      kernels.push_back([real, width = set.tangent()] { return diagonal_kernel(real, width); });
    kernels.push_back([manifold = set.manifold, state = values.state, real] {
      return retract_kernel(manifold, state, real);
    });
  }
  return kernels;
}

double Evaluator::try_step(const Buffer& step) {
  if (state_->host) return state_->host->try_step(step);
  state_->launch_retract(step);
  state_->launch_cost(state_->candidate);
  state_->sum_cost();
  return state_->read_cost();
}

double Evaluator::try_gradient(const Buffer& step) {
  State& s = *state_;
  s.launch_retract(step);
  s.launch_gradient(s.candidate, false);
  s.sum_cost();
  return s.read_cost();
}

double Evaluator::try_state(std::span<const double> ambient) {
  State& s = *state_;
  write_numbers(s.device, ambient, s.candidate);
  s.launch_cost(s.candidate);
  s.sum_cost();
  return s.read_cost();
}
std::vector<double> Evaluator::candidate() const {
  return download_numbers(state_->device, state_->candidate);
}

void Evaluator::accept() {
  state_->device.copy(state_->candidate, state_->x);
  state_->jacobian_current = state_->residuals_current = false;
}

double Evaluator::state_norm() const {
  const State& s = *state_;
  if (s.host) return s.host->state_norm();
  Buffer state = s.x;
  if (s.any_fixed) {
    state = s.device.allocate(s.values.state, {s.ambient});
    primitives::multiply(s.device, s.x, s.free_numbers, state);
  }
  if (s.parts)
    return std::sqrt(
        s.parts->total(s.parts->shared().ambient, s.sets.back().ambient(), [&](int64_t first, int64_t n) {
          return optimize::dot(s.device, state.rows(first, n), state.rows(first, n));
        }));
  primitives::norm(s.device, state, s.norm);
  return download_numbers(s.device, s.norm)[0];
}

std::vector<BatchReport> Evaluator::batch_reports() const {
  std::vector<BatchReport> reports;
  for (const BatchState& batch : state_->batches) {
    reports.push_back(batch.report);
    if (batch.jacobian) reports.back().bytes += batch.jacobian.bytes();
  }
  return reports;
}
int64_t Evaluator::scratch_bytes() const {
  const State& s = *state_;
  int64_t sum = s.gradient_scratch ? s.gradient_scratch.bytes() : 0;
  if (s.slot_scratch && s.slot_scratch.storage() != s.gradient_scratch.storage())
    sum += s.slot_scratch.bytes();
  return sum + (s.diagonal_scratch ? s.diagonal_scratch.bytes() : 0);
}
void Evaluator::wait_for_kernels() {
  if (!state_->ahead) return;
  state_->ahead->wait_all();
  state_->ahead->check();
}

namespace {

/// J, or H, of a batch's instances from what is stored of it: (instances, rows, columns).
std::vector<double> host_jacobian(const Device& device, const BatchState& batch) {
  const TermDerivatives& term = *batch.term;
  const int64_t n = batch.n;
  const int rows = term.rows(), columns = term.columns();
  const std::vector<double> stored =
      term.stored_count() == 0 ? std::vector<double>() : download_numbers(device, batch.jacobian);
  std::vector<double> jacobian(size_t(n) * size_t(rows) * size_t(columns));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      const TermDerivatives::Entry e = term.matrix_place(r, c);
      for (int64_t i = 0; i < n; ++i)
        jacobian[size_t((i * rows + r) * columns + c)] =
            e.stored < 0 ? e.factor : e.factor * stored[size_t(e.stored * n + i)];
    }
  return jacobian;
}

}  // namespace

std::vector<double> Evaluator::State::host_residuals(const BatchState& batch) const {
  const TermDerivatives& term = *batch.term;
  const int64_t n = batch.n, rows = term.rows();
  // Products share the slots' memory, so gradients are computed again.
  const auto run = [&](Output output, const char* name, const Buffer& to) {
    launch(device, instance_kernel(batch.term, values, output), n,
           instance_arguments(batch, x, values).set(name, to));
    return download_numbers(device, to);
  };
  std::vector<double> residuals(size_t(n * rows));
  if (term.energy()) {
    const std::vector<double> g = run(kGradient, "gradient", batch.gradient_slots);
    for (const TermDerivatives::SlotClass& c : term.classes())
      for (int k = 0; k < c.width; ++k)
        for (size_t at = 0; at < c.slots.size(); ++at)
          for (int64_t i = 0; i < n; ++i)
            residuals[size_t(i * rows + term.first_column()[size_t(c.slots[at])] + k)] =
                g[size_t((c.first_row + k * int64_t(c.slots.size()) + int64_t(at)) * n + i)];
    return residuals;
  }
  const std::vector<double> by_row =
      batch.host ? host_output(batch, download_numbers(device, x), kResiduals)
      : residuals_current && batch.residuals
          ? download_numbers(device, batch.residuals)
          : run(kResiduals, "residuals", device.allocate(storage_of(values.compute), {rows, n}));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < rows; ++k) residuals[size_t(i * rows + k)] = by_row[size_t(k * n + i)];
  return residuals;
}

std::vector<HostBatch> Evaluator::host_batches(bool numbers) const {
  State& s = *state_;
  if (numbers) s.ensure_jacobian();
  std::vector<HostBatch> result;
  for (const BatchState& batch : s.batches) {
    const TermDerivatives& term = *batch.term;
    HostBatch h;
    h.rows = term.rows(), h.widths = term.widths(), h.instances = batch.n, h.energy = term.energy();
    const int64_t n = batch.n;
    const int slots = int(term.widths().size());
    if (batch.columns.empty()) {
      batch.columns.resize(size_t(n * slots));
      for (int k = 0; k < slots; ++k)
        for (int64_t i = 0; i < n; ++i) {
          const int64_t block = batch.blocks[size_t(k * n + i)];
          batch.columns[size_t(i * slots + k)] = s.fixed[size_t(block)] ? -1 : s.tangent_of(block);
        }
    }
    h.columns = batch.columns;
    if (numbers) {
      h.jacobian = host_jacobian(s.device, batch);
      h.residuals = s.host_residuals(batch);
    }
    result.push_back(std::move(h));
  }
  return result;
}

}  // namespace lockstep::solve
