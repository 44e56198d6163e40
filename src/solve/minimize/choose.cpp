#include "solve/minimize/choose.hpp"

#include <algorithm>
#include <cmath>

#include "device/variants/variants.hpp"
#include "solve/minimize/order.hpp"
#include "solve/minimize/run.hpp"
#include "solve/model/problem.hpp"
#include "solve/model/term_derivatives.hpp"

namespace lockstep::solve {
namespace {

constexpr int64_t kDenseQr = 100, kDenseQrNumbers = 1'000'000;
constexpr int64_t kDenseCholesky = 300, kDenseSchur = 3'000, kSparseCholesky = 200'000;

/// Unknowns and blocks of a set that are not fixed.
std::pair<int64_t, int64_t> free_part(const Problem::State& state, const SetState& set) {
  int64_t blocks = 0;
  for (int64_t b = 0; b < set.count; ++b) blocks += !state.fixed[size_t(set.first_block + b)];
  return {blocks * set.tangent(), blocks};
}

bool in_two_slots(const Problem::State& state, const SetState& set) {
  for (const Batch& batch : state.batches) {
    const size_t slots = batch.expression->slots.size();
    for (const Segment& segment : batch.segments)
      for (int64_t i = 0; i < segment.count; ++i) {
        if (!segment.counts(i)) continue;
        int found = 0;
        for (size_t s = 0; s < slots; ++s) {
          const int32_t block = segment.blocks[size_t(i) * slots + s];
          found += block >= set.first_block && block < set.first_block + set.count;
        }
        if (found > 1) return true;
      }
  }
  return false;
}

/// The set that is the first group, if no term has two of its blocks and others stay; else -1.
int separable_first_group(const Problem& problem, const std::vector<int32_t>& groups) {
  const Problem::State& state = problem.state();
  const int set = first_group_set(problem, groups);
  const bool separable = set >= 0 && state.sets[size_t(set)].tangent() <= kWidestInverse &&
                         !in_two_slots(state, state.sets[size_t(set)]) &&
                         free_part(state, state.sets[size_t(set)]).first < problem.variable_count();
  return separable ? set : -1;
}

/// The variant that the table has for so many residuals; exact numerics, where all devices owe the same solver's bits.
bool second_variant(const variants::Computation& computation, const Problem& problem,
                    const DeviceInfo& device) {
  const variants::Axis residuals{"residuals", double(problem.residual_count())};
  const variants::Problem size{device.software ? "software" : "", {&residuals, 1}};
  return variants::choose(computation, device, Numerics::exact, size).variant == 1;
}

}  // namespace

const variants::Computation& eliminated_computation() {
  static const variants::Computation computation({.name = "solve.eliminated",
                                                  .variants = {"dense_schur", "schur_pcg"},
                                                  .axes = {"residuals"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

const variants::Computation& factor_computation() {
  static const variants::Computation computation({.name = "solve.factor",
                                                  .variants = {"cholesky", "device_cholesky"},
                                                  .axes = {"residuals"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

int eliminable_set(const Problem& problem) {
  const Problem::State& state = problem.state();
  int64_t all = 0;
  for (const SetState& set : state.sets) all += free_part(state, set).second;
  for (size_t k = 0; k < state.sets.size(); ++k) {
    const int64_t blocks = free_part(state, state.sets[k]).second;
    if (blocks > all - blocks && blocks < all && !in_two_slots(state, state.sets[k])) return int(k);
  }
  return -1;
}

bool has_host_terms(const Problem& problem) {
  return std::ranges::any_of(problem.state().batches,
                             [](const Batch& b) { return b.expression->host && b.instances > 0; });
}

Linear choose_linear(const Problem& problem, const Options& options, const DeviceInfo& device,
                     Numerics numerics) {
  if (options.linear != Linear::automatic) return options.linear;
  if (options.parts > 1) return eliminable_set(problem) >= 0 ? Linear::schur_pcg : Linear::pcg;
  const Problem::State& state = problem.state();
  const int64_t unknowns = problem.variable_count();
  const bool energies = std::any_of(state.batches.begin(), state.batches.end(),
                                    [](const Batch& batch) { return batch.expression->energy; });
  const std::vector<int32_t> groups = elimination_groups(problem, options);
  if (groups.empty() && unknowns <= kDenseQr && problem.residual_count() * unknowns <= kDenseQrNumbers &&
      !energies)
    return Linear::dense_qr;
  if (groups.empty() && unknowns <= kDenseCholesky) return Linear::dense_cholesky;
  if (has_host_terms(problem)) return Linear::cholesky;
  if (const int set = groups.empty() ? eliminable_set(problem) : separable_first_group(problem, groups);
      set >= 0 && !energies) {
    const int64_t rest = unknowns - free_part(state, state.sets[size_t(set)]).first;
    return rest > kDenseSchur || second_variant(eliminated_computation(), problem, device)
               ? Linear::schur_pcg
               : Linear::dense_schur;
  }
  if (unknowns <= kSparseCholesky || !groups.empty())
    return numerics == Numerics::fast && options.precision == Precision::f64 &&
                   second_variant(factor_computation(), problem, device)
               ? Linear::device_cholesky
               : Linear::cholesky;
  return Linear::pcg;
}

bool iterative(Linear linear) { return linear == Linear::pcg || linear == Linear::schur_pcg; }

std::unique_ptr<LinearSolver> make_linear_solver(Linear linear, int max_iterations) {
  switch (linear) {
    case Linear::pcg: return make_pcg_solver(max_iterations);
    case Linear::schur_pcg: return make_schur_solver(max_iterations);
    case Linear::device_cholesky: return make_device_cholesky();
    default: return make_holding_solver(linear);
  }
}

}  // namespace lockstep::solve
