#include "solve/smooth/factor_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

FactorGroup::FactorGroup(Type type, std::vector<BlockSet> sets, TermForm form)
    : type_(std::move(type)),
      sets_(std::move(sets)),
      slots_(std::move(form.slots)),
      datum_(std::move(form.data)) {
  for (const char c : name().substr(0, 32))
    form.expression.label += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  Segment segment;
  segment.count = 1, segment.constants = form.constants;
  Batch batch{name(), std::make_shared<const ExpressionKey>(std::move(form.expression)), {}, 1};
  batch.segments.push_back(std::move(segment));
  term_ = derivatives_of(batch);
  for (size_t k = 0; k < form.constants.size(); ++k) {
    if (term_->constants()[k].where == ConstantUse::Where::uniform) uniforms_.push_back(form.constants[k]);
    if (term_->constants()[k].where == ConstantUse::Where::column) columns_.push_back(form.constants[k]);
  }
  for (int r = 0; r < term_->rows(); ++r)
    for (int c = 0; c < term_->columns(); ++c) entries_.push_back(term_->entry(r, c));
}

const std::string& FactorGroup::name() const {
  return std::visit([](const auto& type) -> const std::string& { return type.name; }, type_);
}
int FactorGroup::data() const {
  return std::visit([](const auto& type) { return type.data; }, type_);
}

void FactorGroup::gather(std::span<const SmoothFactor* const> factors,
                         const std::vector<BlockValues>& values) {
  const size_t n = factors.size();
  in_.state.clear();
  in_.blocks.resize(slots_.size() * n);
  in_.data.resize((datum_.size() + columns_.size()) * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t s = 0; s < slots_.size(); ++s) {
      const BlockValues& own = values[size_t(factors[i]->slots[size_t(slots_[s])])];
      in_.blocks[s * n + i] = int32_t(in_.state.size());
      in_.state.insert(in_.state.end(), own.begin(), own.end());
    }
    for (size_t k = 0; k < datum_.size(); ++k) in_.data[k * n + i] = factors[i]->data[size_t(datum_[k])];
    for (size_t k = 0; k < columns_.size(); ++k) in_.data[(datum_.size() + k) * n + i] = columns_[k];
  }
}

void FactorGroup::compute(const Device& device, int64_t n, bool derivatives) {
  const int64_t rows = term_->rows(), stored = term_->stored_count();
  if (term_->host()) {
    HostInstances instances(term_, {n, in_.blocks, in_.blocks, in_.data, uniforms_});
    out_.cost = instances.output(in_.state, kCost);
    if (!derivatives) return;
    out_.residuals = instances.output(in_.state, kResiduals);
    out_.jacobian = instances.output(in_.state, kJacobian);
    return;
  }
  const ElementTypes types;
  std::optional<Kernel>& kernel = derivatives ? linear_kernel_ : cost_kernel_;
  if (!kernel) {
    const unsigned outputs =
        derivatives ? kCost | kResiduals | (stored > 0 ? unsigned(kJacobian) : 0u) : unsigned(kCost);
    kernel = instance_kernel(term_, types, outputs);
  }
  Arguments arguments;
  arguments.set("state", device.upload(in_.state));
  arguments.set("blocks", device.upload(std::span<const int32_t>(in_.blocks), {int64_t(slots_.size()), n}));
  if (!in_.data.empty())
    arguments.set("data",
                  device.upload(std::span<const double>(in_.data), {int64_t(in_.data.size()) / n, n}));
  set_uniforms(arguments, uniforms_, types);
  const Buffer cost = device.allocate(Storage::f64, {n});
  arguments.set("cost", cost);
  Buffer residuals, jacobian;
  if (derivatives) {
    arguments.set("residuals", residuals = device.allocate(Storage::f64, {rows, n}));
    if (stored > 0) arguments.set("jacobian", jacobian = device.allocate(Storage::f64, {stored, n}));
  }
  device.launch(*kernel, {n}, arguments);
  const auto read = [&](const Buffer& from, std::vector<double>& to) {
    to.resize(size_t(from.elements()));
    device.read(from, to.data(), from.bytes());
  };
  read(cost, out_.cost);
  if (!derivatives) return;
  read(residuals, out_.residuals);
  if (stored > 0) read(jacobian, out_.jacobian);
}

/// [J r]^T [J r] of an instance; a variable in two slots has the sum of their columns.
void FactorGroup::fill(SmoothFactor& factor, size_t i, size_t n, std::span<const int32_t> widths) {
  const size_t rows = size_t(term_->rows()), columns = size_t(term_->columns());
  size_t size = 1;
  for (const int32_t v : factor.variables) size += size_t(widths[size_t(v)]);
  dense_.assign(rows * size, 0);
  for (size_t s = 0; s < slots_.size(); ++s) {
    const int32_t variable = factor.slots[size_t(slots_[s])];
    const size_t width = size_t(widths[size_t(variable)]), first = size_t(term_->first_column()[s]);
    size_t at = 0;
    for (size_t k = 0; factor.variables.size() > k && factor.variables[k] != variable; ++k)
      at += size_t(widths[size_t(factor.variables[k])]);
    for (size_t c = 0; c < width; ++c)
      for (size_t r = 0; r < rows; ++r) {
        const TermDerivatives::Entry& e = entries_[r * columns + first + c];
        dense_[(at + c) * rows + r] +=
            e.stored < 0 ? e.factor : e.factor * out_.jacobian[size_t(e.stored) * n + i];
      }
  }
  for (size_t r = 0; r < rows; ++r) dense_[(size - 1) * rows + r] = out_.residuals[r * n + i];
  factor.gram.resize(size * size);
  bool finite = std::isfinite(out_.cost[i]);
  for (size_t a = 0; a < size; ++a)
    for (size_t b = a; b < size; ++b) {
      double sum = 0;
      for (size_t r = 0; r < rows; ++r) sum += dense_[a * rows + r] * dense_[b * rows + r];
      factor.gram[a * size + b] = factor.weight * sum;
      finite &= std::isfinite(sum);
    }
  factor.cost = factor.weight * out_.cost[i];
  if (!finite)
    throw InputError(fmt::format("residuals or derivatives of {} that are not finite", name()),
                     "solve smoother", "finite numbers");
}

void FactorGroup::linearise(const Device& device, std::span<SmoothFactor* const> factors,
                            const std::vector<BlockValues>& values, std::span<const int32_t> widths) {
  gather(factors, values);
  compute(device, int64_t(factors.size()), true);
  for (size_t i = 0; i < factors.size(); ++i) fill(*factors[i], i, factors.size(), widths);
}

double FactorGroup::cost(const Device& device, std::span<const SmoothFactor* const> factors,
                         const std::vector<BlockValues>& values) {
  gather(factors, values);
  compute(device, int64_t(factors.size()), false);
  double sum = 0;
  for (size_t i = 0; i < factors.size(); ++i) sum += factors[i]->weight * out_.cost[i];
  return sum;
}

}  // namespace lockstep::solve
