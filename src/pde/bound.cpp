#include "pde/bound.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::pde {

void BoundLoss::run() const {
  for (const Launch& l : state_->launches) state_->device.launch_with(l.kernel, l.extent, l.arguments, {});
}

std::vector<double> BoundLoss::terms() const {
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
  std::vector<double> terms(plan.terms.size(), 0.0);
  for (size_t k = 0; k < sums.size(); ++k)
    terms[size_t(plan.term_of[k % plan.residuals.size()])] += sums[k] * state_->total_scale[k];
  return terms;
}

const std::vector<std::string>& BoundLoss::term_names() const { return state_->d->plan->terms; }

double BoundLoss::loss() const {
  double total = 0;
  for (double t : terms()) total += t;
  return total;
}

Buffer BoundLoss::gradient_rows(int level) const {
  if (!state_->rows) return {};
  const std::vector<int> levels = FieldArrays::levels(state_->outputs);
  for (size_t k = 0; k < levels.size(); ++k)
    if (levels[k] == level) return state_->gradients[k];
  return {};
}

Buffer BoundLoss::gradient(std::string_view field, int level) const {
  if (state_->rows) return {};
  for (size_t k = 0; k < state_->outputs.size(); ++k) {
    const FieldLevel& o = state_->outputs[k];
    if (o.level == level && state_->d->plan->fields[size_t(o.field_index)].name == field)
      return state_->gradients[k];
  }
  return {};
}

Path BoundLoss::path() const { return state_->path; }
double BoundLoss::bytes() const { return state_->bytes; }

}  // namespace lockstep::pde
