#include "pde/kernels/bound.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::pde {

void BoundLoss::run() const {
  for (const Launch& l : state_->launches) state_->device.launch_with(l.kernel, l.extent, l.arguments, {});
}

std::vector<double> BoundLoss::terms() const {
  expect_whole(*state_);
  const Plan& plan = *state_->d->plan;
  for (const Launch& l : state_->totals_launches)
    state_->device.launch_with(l.kernel, l.extent, l.arguments, {});
  std::vector<double> sums;
  if (state_->totals.storage() == Storage::f64) {
    sums = state_->device.download<double>(state_->totals);
  } else {
    const std::vector<float> narrow = state_->device.download<float>(state_->totals);
    sums.assign(narrow.begin(), narrow.end());
  }
  return weighted_terms(plan, sums, state_->total_scale);
}

std::vector<double> weighted_terms(const Plan& plan, const std::vector<double>& sums,
                                   const std::vector<double>& scale) {
  std::vector<double> terms(plan.terms.size(), 0.0);
  for (size_t k = 0; k < sums.size(); ++k)
    terms[size_t(plan.term_of[k % plan.residuals.size()])] += sums[k] * scale[k];
  return terms;
}

void expect_whole(const BoundLoss::State& bound) {
  if (!bound.partials.empty())
    throw UnsupportedError("the loss of one rank's planes", "pde",
                           "DividedLoss::terms, which every rank calls");
}

const std::vector<std::string>& BoundLoss::term_names() const { return state_->d->plan->terms; }

double BoundLoss::loss() const {
  double total = 0;
  for (double t : terms()) total += t;
  return total;
}

Buffer BoundLoss::State::gradient_of(int field, int64_t level) const {
  if (rows) {
    const std::vector<int> levels = FieldArrays::levels(outputs);
    const auto at = std::find(levels.begin(), levels.end(), int(level));
    return at == levels.end() ? Buffer() : gradients[size_t(at - levels.begin())];
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k].field_index == field && outputs[k].level == level) return gradients[k];
  return {};
}

Buffer BoundLoss::gradient_rows(int level) const {
  return state_->rows ? state_->gradient_of(-1, level) : Buffer();
}

Buffer BoundLoss::gradient(std::string_view field, int level) const {
  const std::vector<FieldInfo>& fields = state_->d->plan->fields;
  for (size_t f = 0; f < fields.size() && !state_->rows; ++f)
    if (fields[f].name == field) return state_->gradient_of(int(f), level);
  return {};
}

Path BoundLoss::path() const { return state_->path; }
double BoundLoss::bytes() const { return state_->bytes; }

}  // namespace lockstep::pde
