#include "solve_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "core/telemetry.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"
#include "solve/minimize/report.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

template <class T>
using Choices = std::vector<std::pair<const char*, T>>;

const Choices<solve::Method>& methods() {
  using M = solve::Method;
  static const Choices<M> all = {{"lm", M::lm},       {"gn", M::gn},         {"dogleg", M::dogleg},
                                 {"lbfgs", M::lbfgs}, {"newton", M::newton}, {"sgd", M::sgd},
                                 {"adam", M::adam},   {"adamw", M::adamw}};
  return all;
}
const Choices<solve::Linear>& linears() {
  using L = solve::Linear;
  static const Choices<L> all = {{"auto", L::automatic},
                                 {"dense", L::dense_cholesky},
                                 {"dense-qr", L::dense_qr},
                                 {"cholesky", L::cholesky},
                                 {"pcg", L::pcg},
                                 {"schur-pcg", L::schur_pcg},
                                 {"dense-schur", L::dense_schur}};
  return all;
}
const Choices<solve::Precision>& precisions() {
  using P = solve::Precision;
  static const Choices<P> all = {{"f64", P::f64}, {"f32", P::f32}, {"mixed", P::mixed}};
  return all;
}

const Choices<solve::Backend>& backends() {
  using B = solve::Backend;
  static const Choices<B> all = {{"auto", B::automatic}, {"cpu", B::cpu}, {"gpu", B::gpu}};
  return all;
}

const Choices<solve::Damping>& dampings() {
  using D = solve::Damping;
  static const Choices<D> all = {{"diag", D::diagonal}, {"identity", D::identity}};
  return all;
}

template <class T>
void add_named(CLI::App& app, const std::string& option, std::string& value, const std::string& help,
               const Choices<T>& choices) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.emplace_back(choice.first);
  add_choice(app, option, value, fmt::format("{} ({})", help, value), names);
}
template <class T>
T chosen(const std::string& text, const Choices<T>& choices) {
  for (const auto& [name, value] : choices)
    if (text == name) return value;
  throw InternalError(fmt::format("choice '{}'", text), "solve options", "a name that the parser lets pass");
}

/// The line that shows how far a minimisation has come; it goes with the options that hold it.
class StatusLine {
 public:
  explicit StatusLine(bool shown) : shown_(shown && logging::is_terminal()) {}
  ~StatusLine() {
    if (shown_) logging::set_status("");
  }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void show(const solve::Iteration& i) const {
    if (shown_)
      logging::set_status(fmt::format("iteration {:>4}  cost {:.6e}  gradient {:.1e}  step {:.1e}  {:.1f} s",
                                      i.iteration, i.cost, i.gradient_max, i.step_norm, i.seconds));
  }

 private:
  const bool shown_;
};

io::Drawing convergence_plot(const solve::Summary& summary, std::string_view title) {
  io::PlotSeries cost{"cost", {}, {}}, gradient{"largest gradient component", {}, {}};
  cost.x.push_back(0);
  cost.y.push_back(summary.initial_cost);
  for (const solve::Iteration& i : summary.trace) {
    cost.x.push_back(i.iteration);
    cost.y.push_back(i.cost);
    gradient.x.push_back(i.iteration);
    gradient.y.push_back(i.gradient_max);
  }
  io::PlotOptions options;
  options.log_y = options.whole_x = true;
  options.height = 360;
  options.title = title;
  options.y_label = "cost";
  cost.name.clear();
  gradient.name.clear();
  const io::Drawing top = io::draw_plot({&cost, 1}, options);
  options.title.clear();
  options.y_label = "gradient, largest component";
  options.x_label = "iteration";
  const io::Drawing parts[] = {top, io::draw_plot({&gradient, 1}, options)};
  return io::stack(parts);
}

/// Lines of telemetry: what was evaluated as one, every kernel, and the bytes that went each way. Occupancy
/// is null where the back end does not tell it.
void record_evaluation(const solve::Summary& summary) {
  Telemetry& telemetry = Telemetry::global();
  if (!telemetry.enabled()) return;
  for (const solve::BatchReport& b : summary.batches)
    telemetry.event("solve.batch", {{"name", b.name},
                                    {"program", b.program},
                                    {"instances", b.instances},
                                    {"residuals", b.residuals},
                                    {"grouped", b.grouped},
                                    {"bytes", b.bytes},
                                    {"tables_begin_s", b.tables_begin_s},
                                    {"tables_end_s", b.tables_end_s},
                                    {"upload_begin_s", b.upload_begin_s},
                                    {"upload_end_s", b.upload_end_s},
                                    {"first_launch_s", b.launch_s}});
  for (const KernelReport& k : summary.kernel_reports)
    telemetry.event("solve.kernel", {{"kernel", k.name},
                                     {"from_cache", k.from_cache},
                                     {"begin_s", k.begin_s},
                                     {"end_s", k.end_s},
                                     {"group_lanes", k.group_lanes},
                                     {"groups_at_once", k.groups_at_once},
                                     {"registers", k.registers},
                                     {"shared_bytes", k.shared_bytes},
                                     {"local_bytes", k.local_bytes},
                                     {"occupancy", k.occupancy > 0 ? k.occupancy : std::nan("")}});
  telemetry.event("solve.transfers", {{"device", summary.device},
                                      {"kernels_compiled", summary.kernels_compiled},
                                      {"cache_hits", summary.cache_hits},
                                      {"scratch_bytes", summary.scratch_bytes},
                                      {"bytes_to_device", summary.bytes_to_device},
                                      {"bytes_from_device", summary.bytes_from_device}});
}

void add_contract(ordered_json& document, const solve::Summary& summary) {
  document["method"] = solve::name(summary.method);
  document["linear"] = solve::name(summary.linear_used);
  document["linear_given"] = solve::name(summary.linear_given);
  document["linear_used"] = solve::name(summary.linear_used);
  document["precision"] = solve::name(summary.precision);
  document["initial_cost"] = summary.initial_cost;
  document["final_cost"] = summary.final_cost;
  document["iterations"] = summary.iterations;
  document["linear_iterations"] = summary.linear_iterations;
  document["termination"] = solve::name(summary.termination);
  document["converged"] = solve::converged(summary.termination);
  document["message"] = summary.message;
  document["gradient_max"] = summary.gradient_max;
  document["residuals"] = summary.residuals;
  document["variables"] = summary.variables;
  document["kernels"] = summary.kernels;
  document["kernels_compiled"] = summary.kernels_compiled;
  document["cache_hits"] = summary.cache_hits;
  ordered_json batches = ordered_json::array();
  for (const solve::BatchReport& b : summary.batches)
    batches.push_back({{"name", b.name},
                       {"instances", b.instances},
                       {"residuals", b.residuals},
                       {"grouped", b.grouped},
                       {"bytes", b.bytes}});
  document["batches"] = std::move(batches);
  ordered_json trace = ordered_json::array();
  for (const solve::Iteration& i : summary.trace)
    trace.push_back({{"iteration", i.iteration},
                     {"cost", i.cost},
                     {"cost_change", i.cost_change},
                     {"gradient_max", i.gradient_max},
                     {"step_norm", i.step_norm},
                     {"damping", i.damping},
                     {"gain", i.gain},
                     {"accepted", i.accepted},
                     {"linear_iterations", i.linear_iterations},
                     {"seconds", i.seconds}});
  document["trace"] = std::move(trace);
  document["solve_seconds"] = summary.seconds;
}

}  // namespace

void add_solve_options(CLI::App& app, SolveOptions& o) {
  o.app = &app;
  const auto shown = [](double v) { return fmt::format("{:g}", v); };
  add_named(app, "--method", o.method, "Levenberg-Marquardt, Gauss-Newton, dogleg, …", methods());
  add_named(app, "--linear", o.linear, "how steps are solved for", linears());
  app.add_option_function<std::string>(
         "--robust",
         [&o](const std::string& text) {
           try {
             solve::parse_robust_loss(text);
           } catch (const InputError& e) {
             throw InputError(fmt::format("'{}'", text), "--robust",
                              "none, huber, cauchy, tukey, geman_mcclure or arctan, with a positive scale as "
                              "in huber:1.5 or without (1)");
           }
           o.robust = text;
         },
         "none, or huber, cauchy, tukey, geman_mcclure, arctan with a scale: huber:1.5 (none)")
      ->type_name("LOSS")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_integer(app, "--max-iterations", o.max_iterations, fmt::format("({})", o.max_iterations), "N", 0,
              1'000'000'000);
  add_number(
      app, "--function-tolerance", o.function_tolerance,
      fmt::format("ends where the cost changes by less than this share ({})", shown(o.function_tolerance)),
      "X", {.low = 0});
  add_number(
      app, "--gradient-tolerance", o.gradient_tolerance,
      fmt::format("ends where no component of the gradient is larger ({})", shown(o.gradient_tolerance)), "X",
      {.low = 0});
  add_number(app, "--parameter-tolerance", o.parameter_tolerance,
             fmt::format("ends where a step is shorter than this share ({})", shown(o.parameter_tolerance)),
             "X", {.low = 0});
  add_named(app, "--precision", o.precision, "mixed: residuals and gradient in f64, the rest in f32",
            precisions());
  add_named(app, "--backend", o.backend,
            "auto: with --device auto, problems below --threshold run on the CPU", backends());
  add_integer(app, "--threshold", o.threshold,
              "residuals from which a GPU is used (default: as `bench solve.crossover` measured, else 20000)",
              "N", 0, INT64_MAX);
  add_integer(app, "--max-linear-iterations", o.max_linear_iterations,
              fmt::format("of an iterative linear solver per step ({})", o.max_linear_iterations), "N", 1,
              1'000'000'000);
  add_number(app, "--initial-damping", o.initial_damping,
             fmt::format("lambda at the start ({})", shown(o.initial_damping)), "X",
             {.low = 0, .low_open = true});
  add_named(app, "--damping", o.damping, "what lambda multiplies: diag(J^T J) or the identity", dampings());
  add_integer(app, "--batch-size", o.batch_size,
              "instances of a residual that are evaluated at once, for less memory; 0: all (0)", "N", 0,
              INT32_MAX);
  add_number(app, "--learning-rate", o.learning_rate,
             fmt::format("of sgd, adam, adamw ({})", shown(o.learning_rate)), "X",
             {.low = 0, .low_open = true});
  add_number(app, "--momentum", o.momentum, "of sgd (0)", "X", {.low = 0});
  add_number(app, "--weight-decay", o.weight_decay, "of adamw (0)", "X", {.low = 0});
  add_flag(app, "--verbose", o.verbose, "all iterations in the report instead of ten");
  add_flag(app, "--require-convergence", o.require_convergence, "exit code 1 where no tolerance was reached");
  add_file(app, "--checkpoint", o.checkpoint,
           "keeps the state after each iteration; where it exists, the run goes on from it");
  add_file(app, "--plot", o.plot, "cost and gradient over the iterations (.png, .svg)");
  for (const char* name : {"--method",
                           "--linear",
                           "--robust",
                           "--max-iterations",
                           "--function-tolerance",
                           "--gradient-tolerance",
                           "--parameter-tolerance",
                           "--precision",
                           "--backend",
                           "--threshold",
                           "--max-linear-iterations",
                           "--initial-damping",
                           "--damping",
                           "--batch-size",
                           "--learning-rate",
                           "--momentum",
                           "--weight-decay",
                           "--verbose",
                           "--require-convergence",
                           "--checkpoint",
                           "--plot"})
    app.get_option(name)->group("Minimisation");
}

bool given(const CLI::App& app, const std::string& option) { return app.get_option(option)->count() > 0; }

void check_folder(const std::string& file, const std::string& option) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    throw InputError(fmt::format("no folder '{}'", folder.string()), option,
                     "a file in a folder that exists");
}

void check_solve_options(const SolveOptions& o, const CommonOptions& common) {
  const std::string& m = o.method;
  const bool solves = m == "lm" || m == "gn" || m == "dogleg" || m == "newton";
  const bool first_order = m == "sgd" || m == "adam" || m == "adamw";
  const bool iterative = o.linear == "auto" || o.linear == "pcg" || o.linear == "schur-pcg";
  const struct {
    const char* option;
    bool used;
    const char* expected;
  } all[] = {
      {"--linear", solves, "--method lm, gn, dogleg or newton"},
      {"--max-linear-iterations", solves && iterative, "--linear pcg or schur-pcg"},
      {"--damping", solves && m != "gn", "--method lm, dogleg or newton"},
      {"--initial-damping", m == "lm", "--method lm"},
      {"--learning-rate", first_order, "--method sgd, adam or adamw"},
      {"--momentum", m == "sgd", "--method sgd"},
      {"--weight-decay", m == "adamw", "--method adamw"},
      {"--backend", o.backend != "auto" || common.device == "auto", "--device auto, or gpu or cpu"},
      {"--threshold", o.backend == "auto" && common.device == "auto", "--backend auto and --device auto"},
  };
  for (const auto& rule : all)
    if (!rule.used && given(*o.app, rule.option))
      throw InputError(fmt::format("nothing uses it with --method {} --linear {}", m, o.linear), rule.option,
                       rule.expected);
  check_folder(o.plot, "--plot");
  check_folder(o.checkpoint, "--checkpoint");
}

solve::RobustLoss robust_option(const SolveOptions& options) {
  return solve::parse_robust_loss(options.robust);
}

solve::Options minimize_options(Session& session, const SolveOptions& options,
                                const std::function<bool(const solve::Iteration&)>& each) {
  solve::Options o;
  o.method = chosen(options.method, methods());
  o.linear = chosen(options.linear, linears());
  o.precision = chosen(options.precision, precisions());
  o.backend = chosen(options.backend, backends());
  if (o.backend == solve::Backend::automatic && session.options().device != "auto")
    o.backend = solve::Backend::gpu;
  o.threshold = options.threshold;
  o.damping = chosen(options.damping, dampings());
  o.batch_size = options.batch_size;
  o.max_iterations = int(options.max_iterations);
  o.max_linear_iterations = int(options.max_linear_iterations);
  o.function_tolerance = options.function_tolerance;
  o.gradient_tolerance = options.gradient_tolerance;
  o.parameter_tolerance = options.parameter_tolerance;
  o.initial_damping = options.initial_damping;
  o.learning_rate = options.learning_rate;
  o.momentum = options.momentum;
  o.weight_decay = options.weight_decay;
  o.checkpoint = options.checkpoint;
  const auto status = std::make_shared<StatusLine>(!session.options().quiet);
  o.callback = [status, each](const solve::Iteration& i) {
    status->show(i);
    Telemetry::global().event("solve.iteration", {{"iteration", i.iteration},
                                                  {"cost", i.cost},
                                                  {"gradient_max", i.gradient_max},
                                                  {"step_norm", i.step_norm},
                                                  {"damping", i.damping},
                                                  {"accepted", i.accepted},
                                                  {"linear_iterations", i.linear_iterations},
                                                  {"seconds", i.seconds}});
    return !each || each(i);
  };
  return o;
}

solve::Summary run_solve(Session& session, solve::Problem& problem, const SolveOptions& options,
                         const std::function<bool(const solve::Iteration&)>& each) {
  return solve::minimize(problem, session.context(), minimize_options(session, options, each));
}

std::string outcome(const solve::Summary& summary) {
  return fmt::format("cost {:.10g} to {:.10g} in {} iterations ({})", summary.initial_cost,
                     summary.final_cost, summary.iterations, solve::name(summary.termination));
}

int finish_solve(Session& session, const SolveOptions& options, const solve::Summary& summary,
                 ordered_json document, const std::string& text, std::string_view title) {
  if (!options.plot.empty()) {
    session.host_stage("plot", [&] { io::write_drawing(options.plot, convergence_plot(summary, title)); });
    document["plot"] = options.plot;
  }
  add_contract(document, summary);
  record_evaluation(summary);
  if (!session.options().quiet)
    logging::line(solve::report(summary, options.verbose ? std::numeric_limits<int>::max() : 10));
  const bool broken = summary.termination == solve::Termination::failure,
             failed = broken || (options.require_convergence && !solve::converged(summary.termination));
  const std::string why = summary.message.empty() ? "" : ": " + summary.message;
  if (broken)
    logging::line(
        fmt::format("lockstep: error: the minimisation failed{} [{}]: expected values and derivatives that "
                    "are finite, and matrices that are not singular",
                    why, command_path(*options.app)));
  else if (failed)
    logging::line(fmt::format(
        "lockstep: error: not converged: {}{} [--require-convergence]: expected a tolerance that is met",
        solve::name(summary.termination), why));
  session.finish(std::move(document), text);
  return failed ? 1 : 0;
}

}  // namespace lockstep::cli
