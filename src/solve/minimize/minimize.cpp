#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/solve.hpp"
#include "optimize/first_order.hpp"
#include "solve/minimize/checkpoint.hpp"
#include "solve/minimize/choose.hpp"
#include "solve/minimize/crossover.hpp"
#include "solve/minimize/methods/graduation.hpp"
#include "solve/minimize/notes.hpp"
#include "solve/minimize/order.hpp"
#include "solve/minimize/run.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

std::unique_ptr<Minimizer> make_minimizer(Run& run) {
  switch (run.options().method) {
    case Method::lm: return make_levenberg_marquardt(run);
    case Method::dogleg: return make_dogleg(run);
    case Method::gn:
    case Method::newton: return make_newton(run);
    case Method::lbfgs: return make_lbfgs(run);
    default: return make_first_order(run);
  }
}

void check_options(const Options& options) {
  const OptionList& list = schema_of<Options>();
  list.check(&options);
  if (const double factor = options.graduation.factor; factor != 0 && !(factor > 1))
    throw list.error({OptionError::Kind::invalid, "graduation", fmt::format("'{}'", factor),
                      "a factor above 1, or 0", ""});
}

/// Parts are for methods whose sums over residuals are products with vectors.
void check_parts(const Problem& problem, const Options& options, Linear linear) {
  const OptionList& list = schema_of<Options>();
  if (const int ranks = options.ranks ? options.ranks->size() : 1; options.parts < ranks)
    throw parallel::GroupError(
        fmt::format("{} part{} for {} ranks", options.parts, options.parts == 1 ? "" : "s", ranks), "--parts",
        "a part of the residuals for each rank")
        .on_every_rank();
  if (options.parts == 1) return;
  if (options.prepare) throw InputError("Options::prepare over parts", "solve", "one part");
  for (const auto& [option, groups] :
       {std::pair("order", &options.order), {"inner_groups", &options.inner_groups}})
    if (!groups->empty())
      throw list.error(
          {OptionError::Kind::conflict, option, "it is not supported with {parts}", "one part", ""});
  const auto refuse = [&](const char* option, std::string_view given, const char* expected) {
    throw list.error(
        {OptionError::Kind::invalid, option, fmt::format("'{}' with {{parts}}", given), expected, ""});
  };
  if (options.method != Method::lm && options.method != Method::gn)
    refuse("method", name(options.method), "lm or gn");
  if (!iterative(linear))
    refuse("linear", name(linear), "pcg or schur-pcg, whose products are sums over residuals");
  if (!problem.state().lower.empty() || !problem.state().held.empty())
    throw InputError("bounds or held coordinates over parts", "solve", "a problem without them, or one part");
}

void check_problem(const Problem& problem, const Options& options, Linear linear) {
  const Problem::State& state = problem.state();
  if (state.rows == 0) throw InputError("problem without residuals", "solve", "one or more terms");
  std::vector<uint8_t> used(size_t(state.blocks), 0);
  bool energies = false;
  for (const Batch& batch : state.batches) {
    energies = energies || batch.expression->energy;
    const size_t slots = batch.expression->slots.size();
    for (const Segment& segment : batch.segments)
      for (size_t k = 0; k < segment.blocks.size(); ++k)
        if (segment.counts(int64_t(k / slots))) used[size_t(segment.blocks[k])] = 1;
  }
  for (const SetState& set : state.sets)
    for (int64_t b = 0; b < set.count; ++b) {
      const size_t block = size_t(set.first_block + b);
      bool moves = false;
      for (int c = 0; c < set.tangent(); ++c)
        moves = moves || state.moves(int64_t(block), set.first_tangent + b * set.tangent() + c);
      if (!used[block] && moves)
        throw InputError(fmt::format("block {} of {} has no residuals", set.number(b), set.name), "solve",
                         "a term that depends on it, or fix() it");
    }
  if (has_linear_solver(options.method) && linear == Linear::dense_qr && energies)
    throw InputError("dense QR with energy terms", "solve", "a solver by Cholesky or conjugate gradients");
  if (options.prepare && !has_host_terms(problem))
    throw InputError("Options::prepare without host terms", "solve", "host terms, before which it is called");
  const optimize::FirstOrderRow* row = optimize::first_order(name(options.method));
  if (row && row->has_decay && options.weight_decay > 0 && state.ambient != state.tangent)
    throw InputError("weight decay of rotations", "solve options",
                     "blocks that are their own tangent coordinates");
  if (state.lower.empty()) return;
  for (size_t k = 0; k < state.values.size(); ++k)
    if (state.values[k] < state.lower[k] || state.values[k] > state.upper[k])
      throw InputError(fmt::format("number {} starts at {}", k, state.values[k]), "solve bounds",
                       fmt::format("a start from {} to {}", state.lower[k], state.upper[k]));
}

/// Keeps trace, callback, snapshots and the checkpoint while a method runs.
class Loop {
 public:
  Loop(Problem& problem, Context& context, const Options& options, CheckpointFile& file, Summary& summary,
       bool on_cpu, bool notes)
      : problem_(problem),
        notes_(notes),
        options_(options),
        file_(file),
        summary_(summary),
        run_(problem, context, options, summary.linear_used, on_cpu) {}

  void run() {
    latest_.snapshot.state = problem_.state().values;
    const parallel::Group& ranks = run_.ranks();
    if (file_.keeps() || ranks.size() > 1) {
      const Posed posed = solve::posed(problem_, options_);
      const Hash128 settings = settings_hash(options_);
      auto earlier = file_.next(posed, settings, options_.max_iterations);
      if (ranks.size() > 1)
        ranks.expect_same("problems, options and checkpoints",
                          fmt::format("{} {} {} {} {} {}", to_hex(hash128(std::as_bytes(std::span(posed)))),
                                      to_hex(settings), options_.max_iterations, options_.time_limit,
                                      options_.checkpoint, earlier ? int64_t(earlier->trace.size()) : -1));
      if (earlier) {
        latest_ = std::move(*earlier);
        if (latest_.outcome) return take_over(*latest_.outcome);
        resumed_ = true;
        kept_rows_ = reported_ = latest_.trace.size();
      }
      latest_.posed = posed, latest_.settings = settings;
    }
    std::vector<std::string> notes;
    for (bool done = false; !done;) {
      try {
        restore();
        iterate();
        if (notes_) notes = notes_of_rank(problem_, run_);
        done = true;
      } catch (const Restart&) {}
    }
    summary_.linear_iterations = run_.linear_iterations;
    summary_.message = run_.message;
    for (std::string& note : notes) summary_.notes.push_back(std::move(note));
    run_.describe(summary_);
    run_.keep();
    summary_.seconds["total"] = run_.seconds();
    summary_.seconds["evaluate"] = run_.evaluate_seconds;
    summary_.seconds["linear"] = run_.linear_seconds;
    summary_.seconds["step"] = run_.seconds() - run_.evaluate_seconds - run_.linear_seconds;
    if (file_.keeps()) {
      latest_.outcome = {summary_.termination, summary_.final_cost, summary_.gradient_max,
                         problem_.state().values, summary_.message};
      file_.write(latest_);
    }
    summary_.trace = std::move(latest_.trace);
    summary_.iterations = int(summary_.trace.size());
  }

 private:
  std::vector<Iteration>& trace() { return latest_.trace; }
  /// The minimisation had ended before.
  void take_over(const Outcome& outcome) {
    if (outcome.values.size() != problem_.state().values.size())
      throw InternalError("values of a checkpoint", "minimize", "those of its problem");
    problem_.state().values = outcome.values;
    summary_.initial_cost = latest_.initial_cost;
    summary_.final_cost = outcome.final_cost;
    summary_.gradient_max = outcome.gradient_max;
    summary_.termination = outcome.termination;
    summary_.message = outcome.message;
    summary_.linear_iterations = latest_.linear_iterations;
    summary_.trace = std::move(latest_.trace);
    summary_.iterations = int(summary_.trace.size());
    for (const char* part : {"total", "evaluate", "linear", "step"}) summary_.seconds[part] = 0;
  }
  void restore() {
    minimizer_.reset();
    run_.open(latest_.snapshot.state);
    minimizer_ = make_minimizer(run_);
    trace().resize(kept_rows_);
    run_.linear_iterations = latest_.linear_iterations;
    const double cost = minimizer_->restore(latest_.snapshot);
    if (!resumed_ && trace().empty()) {
      latest_.initial_cost = cost;
      latest_.initial_gradient = minimizer_->gradient_max();
      if (!std::isfinite(cost)) {
        throw InputError(fmt::format("cost {} at the start, from {}", std::isnan(cost) ? NAN : cost,
                                     run_.describe_not_finite()),
                         "solve", "a finite start");
      }
    }
    cost_ = cost;
    run_.initial_cost = latest_.initial_cost;
    run_.initial_gradient = latest_.initial_gradient;
    kept_at_ = run_.seconds();
    summary_.initial_cost = latest_.initial_cost;
    summary_.gradient_max = minimizer_->gradient_max();
  }

  void iterate() {
    if (end_) return finish(*end_);
    if (trace().empty() && minimizer_->gradient_max() == 0) return finish(Termination::gradient_tolerance);
    if (!std::isfinite(minimizer_->gradient_max())) {
      run_.message = run_.describe_derivatives();
      return finish(Termination::failure);
    }
    for (;;) {
      if (options_.time_limit > 0 && agreed(file_.seconds() >= options_.time_limit))
        return finish(Termination::time_limit);
      if (int(trace().size()) >= options_.max_iterations) return finish(Termination::max_iterations);
      Iteration row;
      std::optional<Termination> end = minimizer_->iterate(row);
      row.iteration = int(trace().size()) + 1;
      row.seconds = run_.seconds();
      cost_ = row.cost;
      trace().push_back(row);
      summary_.gradient_max = minimizer_->gradient_max();
      // Iterations that a failure made compute again were reported before.
      if (trace().size() > reported_) {
        reported_ = trace().size();
        if (options_.update_values && (options_.callback || run_.ranks().size() > 1)) show_values();
        const bool stop = options_.callback && !options_.callback(row);
        if (agreed(stop) && !end) end = Termination::stopped;
      }
      if (run_.ranks().size() > 1 ? file_.keeps() : end || due() || file_.keeps()) keep();
      end_ = end;
      if (end) return finish(*end);
    }
  }

  /// The answer of rank 0.
  bool agreed(bool mine) const {
    if (run_.ranks().size() == 1) return mine;
    parallel::Bytes said(1, std::byte(mine));
    run_.ranks().broadcast(said);
    return said[0] != std::byte(0);
  }

  /// The accepted point, for the callback.
  void show_values() {
    run_.evaluate([&] {
      minimizer_->settle();
      problem_.state().values = run_.state();
    });
  }

  /// Whether a snapshot is worth its time: rare ones may be large, and a failure costs what came after them.
  bool due() const {
    constexpr double kLeastSeconds = 0.5, kTimes = 20;
    const int interval = minimizer_->snapshot_interval();
    return interval == 1 || (int(latest_.trace.size() - kept_rows_) >= interval &&
                             run_.seconds() - kept_at_ >= std::max(kLeastSeconds, kTimes * keeping_));
  }

  void keep() {
    const double start = run_.seconds();
    Snapshot next;
    run_.evaluate([&] {
      minimizer_->settle();
      next.state = run_.state();
      minimizer_->save(next);
    });
    latest_.snapshot = std::move(next);
    kept_rows_ = trace().size();
    latest_.linear_iterations = run_.linear_iterations;
    kept_at_ = run_.seconds(), keeping_ = kept_at_ - start;
    file_.write(latest_);
  }

  void finish(Termination termination) {
    std::vector<double> values;
    summary_.final_cost = cost_;
    if (const std::vector<double>* best = minimizer_->best()) {
      values = *best;
      summary_.final_cost = minimizer_->best_cost();
    } else {
      run_.evaluate([&] {
        minimizer_->settle();
        values = run_.state();
      });
    }
    Problem::State& state = problem_.state();
    if (!state.lower.empty())
      for (size_t k = 0; k < values.size(); ++k)
        values[k] = std::clamp(values[k], state.lower[k], state.upper[k]);
    state.values = std::move(values);
    summary_.termination = termination;
  }

  Problem& problem_;
  bool notes_;
  const Options& options_;
  CheckpointFile& file_;
  Summary& summary_;
  Run run_;
  std::unique_ptr<Minimizer> minimizer_;
  Checkpoint latest_;
  double cost_ = 0;
  size_t reported_ = 0, kept_rows_ = 0;  // rows that the callback saw; rows at the snapshot
  double kept_at_ = 0, keeping_ = 0;     // seconds: when the last snapshot was used, how long taking it took
  std::optional<Termination> end_;       // decided, with the snapshot taken after it
  bool resumed_ = false;
};

}  // namespace

Summary minimize(Problem& problem, Context& context, const Options& options) {
  CheckpointFile file(options);
  return minimize_next(problem, context, options, file);
}

Summary minimize_next(Problem& problem, Context& context, const Options& options, CheckpointFile& file,
                      bool notes) {
  check_options(options);
  problem.state().check_unused("solve");
  if (options.graduation.factor > 0) return minimize_graduated(problem, context, options, file);
  Summary summary;
  summary.method = options.method;
  summary.precision = options.precision;
  summary.linear_given = options.linear;
  summary.residuals = problem.residual_count();
  summary.variables = problem.variable_count();
  summary.kernels = problem.batch_count();
  const bool on_cpu = prefers_cpu(problem, context.device(), options);
  const Device& device = on_cpu ? context.cpu() : context.device();
  summary.linear_used = has_linear_solver(options.method)
                            ? choose_linear(problem, options, device.info(), device.numerics())
                            : options.linear;
  summary.device = device.info().name;
  check_parts(problem, options, summary.linear_used);
  check_order(problem, options, summary.linear_used);
  check_problem(problem, options, summary.linear_used);
  if (notes) summary.notes = notes_of_parts(problem);
  const ProblemUse use(problem.state());
  Loop(problem, context, options, file, summary, on_cpu, notes).run();
  return summary;
}

}  // namespace lockstep::solve
