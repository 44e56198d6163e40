#include "solve_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "solve/minimize/report.hpp"

namespace lockstep::cli {
namespace {

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
                                 {"dense-schur", L::dense_schur},
                                 {"device-cholesky", L::device_cholesky}};
  return all;
}
const Choices<solve::Precision>& precisions() {
  using P = solve::Precision;
  static const Choices<P> all = {{"f64", P::f64}, {"f32", P::f32}, {"mixed", P::mixed}};
  return all;
}

const Choices<solve::Placement>& backends() {
  using B = solve::Placement;
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

}  // namespace

SolveOptions::SolveOptions(const solve::Options& defaults)
    : linear(solve::name(defaults.linear)),
      max_iterations(defaults.max_iterations),
      function_tolerance(defaults.function_tolerance),
      gradient_tolerance(defaults.gradient_tolerance),
      parameter_tolerance(defaults.parameter_tolerance),
      initial_damping(defaults.initial_damping) {}

void add_solve_options(CLI::App& app, SolveOptions& o) {
  o.app = &app;
  const size_t others = app.get_options().size();
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
                              "none, huber, cauchy, tukey, geman_mcclure, arctan or soft_l1, with a positive "
                              "scale as in huber:1.5 or without (1), or tolerant:A,B");
           }
           o.robust = text;
         },
         "none, or huber, cauchy, tukey, geman_mcclure, arctan, soft_l1 with a scale: huber:1.5; "
         "tolerant:A,B (none)")
      ->type_name("LOSS")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_integer(app, "--max-iterations", o.max_iterations, fmt::format("({})", o.max_iterations), "N", 0,
              1'000'000'000);
  add_number(
      app, "--function-tolerance", o.function_tolerance,
      fmt::format("ends where the cost changes by less than this share ({})", shown(o.function_tolerance)),
      "X", {.low = 0});
  add_number(app, "--gradient-tolerance", o.gradient_tolerance,
             fmt::format("ends where the residuals' cosine with their tangent space is at most this ({})",
                         shown(o.gradient_tolerance)),
             "X", {.low = 0});
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
  add_number(app, "--time-limit", o.time_limit, "after which no iteration begins; 0: none (0)", "SECONDS",
             {.low = 0});
  add_flag(app, "--verbose", o.verbose, "all iterations in the report instead of ten");
  add_flag(app, "--require-convergence", o.require_convergence, "exit code 1 where no tolerance was reached");
  add_output_file(app, "--checkpoint", o.checkpoint,
                  "keeps the state after each iteration; where it exists, the run goes on from it", {});
  add_output_file(app, "--plot", o.plot, "cost and gradient over the iterations (.png, .svg)", kDrawings);
  const std::vector<CLI::Option*> all = app.get_options();
  for (size_t k = others; k < all.size(); ++k) all[k]->group("Minimisation");
}

void add_graduate(CLI::App& app, SolveOptions& o) {
  add_number(
      app, "--graduate", o.graduate,
      "starts with the robust loss as wide as the largest residual, narrower by X every five iterations; "
      "1.4 to 4 are usual, 0: off (0)",
      "X", {.low = 0});
  app.get_option("--graduate")->group("Minimisation");
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
  if (o.graduate == 0) return;
  if (!(o.graduate > 1))
    throw InputError(fmt::format("{}", o.graduate), "--graduate", "a factor above 1, or 0");
  if (o.robust == "none" || o.robust.starts_with("tolerant"))
    throw InputError(fmt::format("nothing uses it with --robust {}", o.robust), "--graduate",
                     "--robust with a loss that has a scale");
}

solve::RobustLoss robust_option(const SolveOptions& options) {
  return solve::parse_robust_loss(options.robust);
}

void set_run_options(Session& session, const SolveOptions& options, solve::RunOptions& run) {
  solve::Options& o = run.options;
  o.method = chosen(options.method, methods());
  o.linear = chosen(options.linear, linears());
  o.precision = chosen(options.precision, precisions());
  o.backend = chosen(options.backend, backends());
  if (o.backend == solve::Placement::automatic && session.options().device != "auto")
    o.backend = solve::Placement::gpu;
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
  o.time_limit = options.time_limit;
  o.graduation.factor = options.graduate;
  const auto status = std::make_shared<StatusLine>(!session.options().quiet);
  o.callback = [status](const solve::Iteration& i) {
    status->show(i);
    return true;
  };
  run.plot = options.plot;
}

int print_run(Session& session, const SolveOptions& options, const solve::RunResult& result,
              const std::string& text, const std::string& json) {
  const solve::Summary& summary = result.summary;
  for (const StageRecord& stage : result.host_stages) session.note(stage);
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
  session.finish(nlohmann::ordered_json::parse(json), text);
  return failed ? 1 : 0;
}

}  // namespace lockstep::cli
