// Evaluations for users: rows in the order of adding, columns of what moves.
#include "lockstep/solve/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/normal_equations.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

/// The first row of each instance that counts, by batch; -1 for energies.
struct RowPlan {
  std::vector<std::vector<int64_t>> first;
  int64_t rows = 0;
};

/// Calls f(record number, instance of the record, batch, segment, instance of the segment) in the order of
/// adding.
template <class F>
void each_instance_added(const Problem::State& state, F f) {
  for (const auto& [number, record] : state.terms)
    each_instance(record, [&](int64_t instance, const TermRecord::Part& part, int64_t i) {
      f(number, instance, size_t(part.batch), size_t(part.segment), i);
    });
}

/// Places of instances among those of their batch that count; -1 for those that do not.
std::vector<std::vector<std::vector<int64_t>>> places_of(const Problem::State& state) {
  std::vector<std::vector<std::vector<int64_t>>> places;
  for (const Batch& batch : state.batches) {
    int64_t next = 0;
    auto& own = places.emplace_back();
    for (const Segment& segment : batch.segments) {
      auto& here = own.emplace_back();
      here.reserve(size_t(segment.count));
      for (int64_t i = 0; i < segment.count; ++i) here.push_back(segment.counts(i) ? next++ : -1);
    }
  }
  return places;
}

RowPlan plan_rows(const Problem::State& state) {
  const auto places = places_of(state);
  RowPlan plan;
  for (const Batch& batch : state.batches) plan.first.emplace_back(size_t(batch.instances), -1);
  each_instance_added(state, [&](int, int64_t, size_t batch, size_t segment, int64_t i) {
    const int64_t place = places[batch][segment][size_t(i)];
    const ExpressionKey& expression = *state.batches[batch].expression;
    if (place < 0 || expression.energy) return;
    plan.first[batch][size_t(place)] = plan.rows;
    plan.rows += expression.rows;
  });
  return plan;
}

/// The column of each tangent coordinate, -1 where it is held; how many there are is put behind them.
std::vector<int32_t> plan_columns(const Problem::State& state) {
  std::vector<int32_t> columns;
  columns.reserve(size_t(state.tangent) + 1);
  int32_t next = 0;
  for (const SetState& set : state.sets)
    for (int64_t b = 0; b < set.count; ++b)
      for (int c = 0; c < set.tangent(); ++c)
        columns.push_back(state.moves(set.first_block + b, int64_t(columns.size())) ? next++ : -1);
  columns.push_back(next);
  return columns;
}

/// The same problem without losses and weights.
std::unique_ptr<Problem> without_losses(const Problem& problem) {
  auto plain = std::make_unique<Problem>();
  Problem::State& to = plain->state();
  const Problem::State& from = problem.state();
  to.sets = from.sets, to.values = from.values, to.fixed = from.fixed, to.held = from.held;
  to.lower = from.lower, to.upper = from.upper, to.terms = from.terms;
  to.blocks = from.blocks, to.ambient = from.ambient, to.tangent = from.tangent, to.rows = from.rows;
  for (const Batch& batch : from.batches) {
    ExpressionKey expression = *batch.expression;
    const size_t all = size_t(expression.constants), loss = size_t(expression.loss_constants);
    expression.loss = RobustLoss::Kind::none;
    expression.loss_expression.reset();
    expression.loss_constants = 0, expression.constants -= int(loss);
    expression.weighted = false;
    complete_key(expression);
    Batch& own = to.batches.emplace_back(batch);
    own.expression = std::make_shared<const ExpressionKey>(std::move(expression));
    for (Segment& segment : own.segments) {
      segment.weights.clear();
      std::vector<double> constants;
      for (size_t at = 0; at + all <= segment.constants.size() && all > 0; at += all)
        constants.insert(constants.end(), segment.constants.begin() + int64_t(at),
                         segment.constants.begin() + int64_t(at + all - loss));
      segment.constants = std::move(constants);
    }
  }
  return plain;
}

/// Pairs the problem's batches with the evaluator's, which has none for batches without instances.
template <class F>
void each_batch(const Problem::State& state, const Evaluator::State& s, F f) {
  size_t k = 0;
  for (size_t b = 0; b < state.batches.size(); ++b)
    if (state.batches[b].instances > 0) f(b, s.batches[k++]);
}

/// A Jacobian's structure, and where its values come from.
struct JacobianPlan {
  SparseRows matrix;  // without values
  struct Source {     // of a batch: value[to] = factor * stored[from], or the factor where from < 0
    std::vector<int32_t> to, from;
    std::vector<double> factor;
  };
  std::vector<Source> sources;  // by batch of the evaluator; none of energies
};

struct PlannedEntry {
  int32_t column, from;
  double factor;
};

/// Entries of one row of an instance, by ascending column. A block in two slots has the sum, as two entries.
void entries_of(const Evaluator::State& s, const BatchState& batch, const std::vector<int32_t>& columns,
                int64_t i, int row, std::vector<PlannedEntry>& entries) {
  const TermDerivatives& term = *batch.term;
  entries.clear();
  for (size_t slot = 0; slot < term.widths().size(); ++slot) {
    const int64_t block = batch.blocks[slot * size_t(batch.n) + size_t(i)];
    const int64_t first = s.tangent_of(block);
    for (int c = 0; c < term.widths()[slot]; ++c) {
      const int32_t column = columns[size_t(first + c)];
      if (column < 0) continue;
      const TermDerivatives::Entry& e = term.entry(row, term.first_column()[slot] + c);
      entries.push_back({column, e.stored < 0 ? -1 : int32_t(e.stored * batch.n + i), e.factor});
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const PlannedEntry& a, const PlannedEntry& b) { return a.column < b.column; });
}

JacobianPlan plan_jacobian(const Problem::State& state, const Evaluator::State& s, const RowPlan& rows,
                           const std::vector<int32_t>& columns) {
  JacobianPlan plan;
  plan.matrix.rows = rows.rows, plan.matrix.columns = columns.back();
  plan.matrix.first.assign(size_t(rows.rows) + 1, 0);
  std::vector<PlannedEntry> entries;
  const auto each_row = [&](auto f) {
    each_batch(state, s, [&](size_t b, const BatchState& batch) {
      if (batch.term->energy()) return;
      for (int64_t i = 0; i < batch.n; ++i)
        for (int r = 0; r < batch.term->rows(); ++r) {
          entries_of(s, batch, columns, i, r, entries);
          f(&batch - s.batches.data(), rows.first[b][size_t(i)] + r);
        }
    });
  };
  const auto different = [&] {
    int64_t count = 0;
    for (size_t k = 0; k < entries.size(); ++k) count += k == 0 || entries[k].column != entries[k - 1].column;
    return count;
  };
  each_row([&](int64_t, int64_t row) { plan.matrix.first[size_t(row) + 1] = different(); });
  for (size_t r = 0; r < size_t(rows.rows); ++r) plan.matrix.first[r + 1] += plan.matrix.first[r];
  if (plan.matrix.first.back() > std::numeric_limits<int32_t>::max())
    throw InputError(fmt::format("{} entries of the Jacobian", plan.matrix.first.back()), "solve evaluate",
                     "fewer than 2^31");
  plan.matrix.column.resize(size_t(plan.matrix.first.back()));
  plan.sources.resize(s.batches.size());
  each_row([&](int64_t batch, int64_t row) {
    JacobianPlan::Source& source = plan.sources[size_t(batch)];
    int64_t at = plan.matrix.first[size_t(row)] - 1;
    for (size_t k = 0; k < entries.size(); ++k) {
      if (k == 0 || entries[k].column != entries[k - 1].column)
        plan.matrix.column[size_t(++at)] = entries[k].column;
      source.to.push_back(int32_t(at));
      source.from.push_back(entries[k].from);
      source.factor.push_back(entries[k].factor);
    }
  });
  return plan;
}

/// Gradient by columns from that by tangent coordinates.
std::vector<double> of_columns(const std::vector<double>& tangent, const std::vector<int32_t>& columns) {
  std::vector<double> out(static_cast<size_t>(columns.back()));
  for (size_t k = 0; k < tangent.size(); ++k)
    if (columns[k] >= 0) out[size_t(columns[k])] = tangent[k];
  return out;
}

/// Residuals by row from those of the batches' instances.
std::vector<double> by_row(const Problem::State& state, const Evaluator::State& s, const RowPlan& rows) {
  std::vector<double> out(static_cast<size_t>(rows.rows));
  each_batch(state, s, [&](size_t b, const BatchState& batch) {
    if (batch.term->energy()) return;
    const std::vector<double> own = s.host_residuals(batch);
    const int64_t width = batch.term->rows();
    for (int64_t i = 0; i < batch.n; ++i)
      std::copy_n(own.begin() + i * width, width, out.begin() + rows.first[b][size_t(i)]);
  });
  return out;
}

void fill_values(const Evaluator::State& s, JacobianPlan& plan) {
  plan.matrix.values.assign(plan.matrix.column.size(), 0);
  for (size_t k = 0; k < plan.sources.size(); ++k) {
    const JacobianPlan::Source& source = plan.sources[k];
    if (source.to.empty()) continue;
    const std::vector<double> stored = s.batches[k].term->stored_count() > 0
                                           ? download_numbers(s.device, s.batches[k].jacobian)
                                           : std::vector<double>();
    for (size_t e = 0; e < source.to.size(); ++e)
      plan.matrix.values[size_t(source.to[e])] +=
          source.from[e] < 0 ? source.factor[e] : source.factor[e] * stored[size_t(source.from[e])];
  }
}

/// J^T J and Hessians as a matrix of both triangles over the columns.
SparseRows normal_matrix(const std::vector<HostBatch>& batches, const std::vector<int32_t>& columns) {
  const NormalEquations equations(batches);
  std::vector<double> values;
  equations.assemble(batches, values);
  const BlockPattern& pattern = equations.pattern();
  std::vector<int32_t> column_of;  // by unknown of the pattern
  for (int64_t b = 0; b < pattern.blocks(); ++b)
    for (int64_t i = 0; i < pattern.width(b); ++i)
      column_of.push_back(columns[size_t(equations.columns()[size_t(b)] + i)]);
  struct Entry {
    int32_t row, column;
    double value;
  };
  std::vector<Entry> entries;
  size_t at = 0;
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int64_t r0 = pattern.first[size_t(pattern.rows[e])], c0 = pattern.first[size_t(pattern.columns[e])];
    const int64_t h = pattern.width(pattern.rows[e]), w = pattern.width(pattern.columns[e]);
    for (int64_t c = 0; c < w; ++c)
      for (int64_t r = 0; r < h; ++r, ++at) {
        const int32_t row = column_of[size_t(r0 + r)], column = column_of[size_t(c0 + c)];
        if (row < 0 || column < 0) continue;
        entries.push_back({row, column, values[at]});
        if (pattern.rows[e] != pattern.columns[e]) entries.push_back({column, row, values[at]});
      }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  });
  SparseRows out;
  out.rows = out.columns = columns.back();
  out.first.assign(size_t(out.rows) + 1, 0);
  for (const Entry& e : entries) {
    ++out.first[size_t(e.row) + 1];
    out.column.push_back(e.column);
    out.values.push_back(e.value);
  }
  for (size_t r = 0; r < size_t(out.rows); ++r) out.first[r + 1] += out.first[r];
  return out;
}

}  // namespace

Evaluation evaluate(const Problem& given, Context& context, const EvaluateOptions& options) {
  const ProblemUse use(given.state());
  const std::unique_ptr<Problem> plain = options.apply_loss ? nullptr : without_losses(given);
  const Problem& problem = plain ? *plain : given;
  const Problem::State& state = problem.state();
  const std::vector<int32_t> columns = plan_columns(state);
  Evaluation out;
  const auto work = [&](const Device& device) {
    out = {};
    Evaluator evaluator(problem, device, Precision::f64);
    Evaluator::State& s = evaluator.internals();
    const bool derivatives = options.jacobian || options.normal;
    if (derivatives)
      out.cost = evaluator.linearize();
    else
      out.cost = options.gradient ? evaluator.value_and_gradient() : evaluator.cost();
    if (options.gradient) out.gradient = of_columns(download_numbers(device, s.gradient), columns);
    if (!options.residuals && !derivatives) return;
    const RowPlan rows = plan_rows(state);
    if (derivatives) s.ensure_jacobian();
    if (options.jacobian) {
      JacobianPlan plan = plan_jacobian(state, s, rows, columns);
      fill_values(s, plan);
      out.jacobian = std::move(plan.matrix);
    }
    if (options.residuals) {
      s.prepare_plain();
      out.residuals = by_row(state, s, rows);
    }
    if (options.normal) out.normal = normal_matrix(evaluator.host_batches(), columns);
  };
  if (context.device().info().limits.f64)
    context.run_stage("solve.evaluate", work);
  else
    context.run_stage_on_cpu("solve.evaluate", work);
  return out;
}

int64_t first_column(const Problem& problem, BlockSet set, int64_t block) {
  const Problem::State& state = problem.state();
  const SetState& s = state.set(set, "solve first_column");
  const int64_t place = s.place(block, "solve first_column");
  const std::vector<int32_t> columns = plan_columns(state);
  for (int c = 0; c < s.tangent(); ++c)
    if (const int32_t at = columns[size_t(s.first_tangent + place * s.tangent() + c)]; at >= 0) return at;
  return -1;
}

std::vector<InstanceResidual> residuals_by_instance(const Problem& problem, Context& context) {
  const Problem::State& state = problem.state();
  const ProblemUse use(state);
  std::vector<std::vector<double>> norms(state.batches.size()), weights(state.batches.size());
  const auto work = [&](const Device& device) {
    Evaluator evaluator(problem, device, Precision::f64);
    Evaluator::State& s = evaluator.internals();
    s.prepare_plain();
    each_batch(state, s, [&](size_t b, const BatchState& batch) {
      norms[b].assign(size_t(batch.n), 0), weights[b].assign(size_t(batch.n), 1);
      const Buffer out = device.allocate(Storage::f64, {batch.n});
      if (batch.term->energy()) {
        device.launch(instance_kernel(batch.term, s.values, kCost), {batch.n},
                      s.instance_arguments(batch, s.x, s.values).set("cost", out));
        norms[b] = download_numbers(device, out);
        return;
      }
      const int64_t rows = batch.term->rows();
      std::vector<double> r;
      if (batch.host) {
        r = batch.host->output(state.values, kPlain), weights[b] = batch.host->output(state.values, kSlope);
      } else {
        const Buffer plain = device.allocate(Storage::f64, {rows, batch.n});
        device.launch(instance_kernel(batch.term, s.values, kPlain | kSlope), {batch.n},
                      s.instance_arguments(batch, s.x, s.values).set("plain", plain).set("slope", out));
        r = download_numbers(device, plain), weights[b] = download_numbers(device, out);
      }
      for (int64_t i = 0; i < batch.n; ++i) {
        double squares = 0;
        for (int64_t k = 0; k < rows; ++k) squares += r[size_t(k * batch.n + i)] * r[size_t(k * batch.n + i)];
        norms[b][size_t(i)] = std::sqrt(squares);
      }
    });
  };
  if (context.device().info().limits.f64)
    context.run_stage("solve.evaluate", work);
  else
    context.run_stage_on_cpu("solve.evaluate", work);
  const auto places = places_of(state);
  std::vector<InstanceResidual> out;
  each_instance_added(state, [&](int r, int64_t instance, size_t b, size_t segment, int64_t i) {
    InstanceResidual& next = out.emplace_back();
    next.terms = {r, state.number}, next.name = state.terms.at(r).name, next.instance = instance;
    const int64_t place = places[b][segment][size_t(i)];
    next.enabled = place >= 0;
    next.norm = place < 0 ? 0 : norms[b][size_t(place)];
    next.weight = place < 0 ? 0 : weights[b][size_t(place)];
    const ExpressionKey& t = *state.batches[b].expression;
    const Segment& s = state.batches[b].segments[segment];
    if (t.has_loss() && !t.loss_expression)
      next.scale = s.constants[size_t(((s.own_constants ? i : 0) + 1) * t.constants - 1)];
  });
  return out;
}

namespace {

/// value[to] += factor * stored[from]: entries that are the sum of two come in two launches.
Kernel scatter_kernel(bool stored) {
  const std::string name = stored ? "solve.scatter" : "solve.scatter.constant";
  return cached_kernel(name, [&] {
    return kernel(name, [=](At<1> at, Parameters& p) {
      const auto to = p.read<i32, 1>("to");
      const AnyGrid factor = p.read("factor", Storage::f64, 1);
      const AnyGrid values = p.read_write("values", Storage::f64, 1);
      AnyVal v = factor.load({at.x});
      if (stored) {
        const auto from = p.read<i32, 1>("from");
        const AnyGrid numbers = p.read("stored", Storage::f64, 1);
        v = v * numbers.load({from[at.x]});
      }
      values.store({to[at.x]}, values.load({to[at.x]}) + v);
    });
  });
}

/// Scatters the entries of a source in rounds, none of which writes a target twice. Constants are separate.
void scatter(const Device& device, const JacobianPlan::Source& source, const Buffer& stored,
             const Buffer& values) {
  std::vector<uint8_t> done(source.to.size(), 0);
  for (size_t left = done.size(); left > 0;) {
    for (const bool constant : {false, true}) {
      std::vector<int32_t> to, from;
      std::vector<double> factor;
      int32_t last = -1;  // entries of one target follow each other
      for (size_t e = 0; e < done.size(); ++e) {
        if (done[e] || (source.from[e] < 0) != constant || source.to[e] == last) continue;
        last = source.to[e], done[e] = 1, --left;
        to.push_back(last), from.push_back(source.from[e]), factor.push_back(source.factor[e]);
      }
      if (to.empty()) continue;
      Arguments arguments;
      arguments.set("to", device.upload(to)).set("factor", device.upload(factor)).set("values", values);
      if (!constant)
        arguments.set("from", device.upload(from)).set("stored", stored.reshape({stored.elements()}));
      device.launch(scatter_kernel(!constant), {int64_t(to.size())}, arguments);
    }
  }
}

}  // namespace

DeviceEvaluation evaluate_on(const Problem& problem, const Device& device) {
  const Problem::State& state = problem.state();
  const std::vector<int32_t> columns = plan_columns(state);
  Evaluator evaluator(problem, device, Precision::f64);
  Evaluator::State& s = evaluator.internals();
  DeviceEvaluation out;
  out.cost = evaluator.linearize();
  s.ensure_jacobian();
  s.prepare_plain();
  const RowPlan rows = plan_rows(state);
  const JacobianPlan plan = plan_jacobian(state, s, rows, columns);
  out.rows = rows.rows, out.columns = columns.back();
  const auto zeros = [&](int64_t n) {
    const Buffer buffer = device.allocate(Storage::f64, {std::max<int64_t>(n, 1)});
    device.clear(buffer);
    return buffer;
  };
  out.values = zeros(int64_t(plan.matrix.column.size()));
  out.residuals = zeros(rows.rows), out.gradient = zeros(columns.back());
  out.first = device.upload(std::vector<int32_t>(plan.matrix.first.begin(), plan.matrix.first.end()));
  out.column = device.upload(plan.matrix.column.empty() ? std::vector<int32_t>{0} : plan.matrix.column);
  JacobianPlan::Source gradient;
  for (size_t k = 0; k + 1 < columns.size(); ++k)
    if (columns[k] >= 0)
      gradient.to.push_back(columns[k]), gradient.from.push_back(int32_t(k)), gradient.factor.push_back(1);
  scatter(device, gradient, s.gradient, out.gradient);
  each_batch(state, s, [&](size_t b, const BatchState& batch) {
    if (batch.term->energy()) return;
    scatter(device, plan.sources[size_t(&batch - s.batches.data())], batch.jacobian, out.values);
    const int64_t width = batch.term->rows();
    const Buffer own = device.allocate(Storage::f64, {width, batch.n});
    if (batch.host)
      write_numbers(device, batch.host->output(state.values, kResiduals), own);
    else
      device.launch(instance_kernel(batch.term, s.values, kResiduals), {batch.n},
                    s.instance_arguments(batch, s.x, s.values).set("residuals", own));
    JacobianPlan::Source residuals;
    for (int64_t k = 0; k < width; ++k)
      for (int64_t i = 0; i < batch.n; ++i) {
        residuals.to.push_back(int32_t(rows.first[b][size_t(i)] + k));
        residuals.from.push_back(int32_t(k * batch.n + i));
        residuals.factor.push_back(1);
      }
    scatter(device, residuals, own, out.residuals);
  });
  device.synchronize();
  return out;
}

}  // namespace lockstep::solve
