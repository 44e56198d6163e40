#include "solve/minimize/kept_tables.hpp"

#include <atomic>
#include <utility>

#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {
namespace {

constexpr int64_t kMostBytes = int64_t(1) << 30;
std::atomic<int64_t> kept_bytes{0};

}  // namespace

KeptTables::~KeptTables() { kept_bytes -= bytes_; }

bool KeptTables::evaluates_on(const Device& device, Precision precision,
                              const EvaluatorOptions& options) const {
  if (!evaluator || options.parts) return false;
  const Evaluator::State& s = evaluator->internals();
  return s.device.same_as(device) && s.precision == precision && s.batch_size == options.batch_size &&
         s.uses == options.uses && s.assembly == options.assembly && s.sums == options.sums;
}

std::shared_ptr<KeptTables> KeptTables::take(Problem& problem) {
  std::shared_ptr<KeptTables> tables = std::exchange(problem.state().kept, nullptr);
  if (tables) kept_bytes -= std::exchange(tables->bytes_, 0);
  return tables;
}

void KeptTables::keep(Problem& problem, std::shared_ptr<KeptTables> tables) {
  const int64_t bytes = tables->evaluator->bytes() + (tables->solver ? tables->solver->bytes() : 0);
  if (kept_bytes + bytes > kMostBytes) return;
  tables->evaluator->rest();
  kept_bytes += tables->bytes_ = bytes;
  problem.state().kept = std::move(tables);
}

}  // namespace lockstep::solve
