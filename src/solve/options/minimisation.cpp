// Names and options of minimisations.
#include <array>

#include "lockstep/solve.hpp"
#include "optimize/first_order.hpp"
#include "optimize/lbfgs/kernels.hpp"
#include "solve/minimize/choose.hpp"

namespace lockstep::solve {

bool has_linear_solver(Method method) {
  return method == Method::lm || method == Method::gn || method == Method::dogleg || method == Method::newton;
}

bool is_first_order(Method method) { return optimize::first_order(name(method)); }

std::span<const Choice<Method>> choices(Method) {
  using enum Method;
  static const auto all = [] {
    std::vector<Choice<Method>> list{
        {"lm", lm}, {"gn", gn}, {"dogleg", dogleg}, {"lbfgs", lbfgs}, {"newton", newton}};
    for (const optimize::FirstOrderRow& row : optimize::first_order_rows())
      list.push_back({row.name, Method(list.size())});
    return list;
  }();
  return all;
}
std::span<const Choice<Linear>> choices(Linear) {
  using enum Linear;
  static constexpr auto kAll = std::to_array<Choice<Linear>>({{"auto", automatic},
                                                              {"dense", dense_cholesky},
                                                              {"dense-qr", dense_qr},
                                                              {"cholesky", cholesky},
                                                              {"pcg", pcg},
                                                              {"schur-pcg", schur_pcg},
                                                              {"dense-schur", dense_schur},
                                                              {"device-cholesky", device_cholesky}});
  return kAll;
}
std::span<const Choice<Precision>> choices(Precision) {
  using enum Precision;
  static constexpr auto kAll =
      std::to_array<Choice<Precision>>({{"f64", f64}, {"f32", f32}, {"mixed", mixed}});
  return kAll;
}
std::span<const Choice<Placement>> choices(Placement) {
  using enum Placement;
  static constexpr auto kAll =
      std::to_array<Choice<Placement>>({{"auto", automatic}, {"cpu", cpu}, {"gpu", gpu}});
  return kAll;
}
std::span<const Choice<Damping>> choices(Damping) {
  static constexpr auto kAll =
      std::to_array<Choice<Damping>>({{"diag", Damping::diagonal}, {"identity", Damping::identity}});
  return kAll;
}
std::span<const Choice<Termination>> choices(Termination) {
  using enum Termination;
  static constexpr auto kAll =
      std::to_array<Choice<Termination>>({{"function_tolerance", function_tolerance},
                                          {"gradient_tolerance", gradient_tolerance},
                                          {"parameter_tolerance", parameter_tolerance},
                                          {"max_iterations", max_iterations},
                                          {"stopped", stopped},
                                          {"no_descent", no_descent},
                                          {"failure", failure},
                                          {"time_limit", time_limit}});
  return kAll;
}

namespace {

bool is_iterative(const Options& o) {
  return has_linear_solver(o.method) &&
         (o.linear == Linear::automatic || o.linear == Linear::pcg || o.linear == Linear::schur_pcg);
}
bool has(const Options& o, bool optimize::FirstOrderRow::* property) {
  const optimize::FirstOrderRow* row = optimize::first_order(name(o.method));
  return row && row->*property;
}
constexpr auto kUnusedByMethod = "it has no effect with this {method}";

/// Each method and linear solver reads some of the options.
void add_method_rules(Schema<Options>& s) {
  const auto of_method = [&s](const char* option, bool (*unused)(const Options&),
                              const std::string& expected) {
    s.useless(option, unused, kUnusedByMethod, expected);
  };
  of_method(
      "linear", [](const Options& o) { return !has_linear_solver(o.method); },
      "{method} lm, gn, dogleg or newton");
  for (const char* option : {"max_linear_iterations", "forcing"})
    s.useless(
        option, [](const Options& o) { return !is_iterative(o); },
        "it has no effect with this {method} and {linear}", "{linear} pcg or schur-pcg");
  of_method(
      "damping", [](const Options& o) { return !has_linear_solver(o.method) || o.method == Method::gn; },
      "{method} lm, dogleg or newton");
  of_method("initial_damping", [](const Options& o) { return o.method != Method::lm; }, "{method} lm");
  of_method("initial_radius", [](const Options& o) { return o.method != Method::dogleg; }, "{method} dogleg");
  of_method("lbfgs_history", [](const Options& o) { return o.method != Method::lbfgs; }, "{method} lbfgs");
  of_method(
      "learning_rate", [](const Options& o) { return !is_first_order(o.method); },
      "{method} " + optimize::first_order_names());
  using optimize::FirstOrderRow;
  of_method(
      "momentum", [](const Options& o) { return !has(o, &FirstOrderRow::has_momentum); },
      "{method} " + optimize::first_order_names(" or ", &FirstOrderRow::has_momentum));
  of_method(
      "weight_decay", [](const Options& o) { return !has(o, &FirstOrderRow::has_decay); },
      "{method} " + optimize::first_order_names(" or ", &FirstOrderRow::has_decay));
  s.useless(
      "threshold", [](const Options& o) { return o.backend != Placement::automatic; },
      "it has no effect with this {backend}", "{backend} auto");
}

void describe_groups(Schema<Options>& s) {
  s.option("order", &Options::order,
           "groups of blocks in the order of elimination: NAME, NAME:BLOCK or NAME:FIRST-LAST, several with "
           "'+' between; the others follow")
      .shown("GROUPS")
      .in_shell(false);
  s.option("inner_groups", &Options::inner_groups,
           "groups of blocks, written as in {order}, that are minimised by themselves after each step; auto: "
           "groups that share no term")
      .flag("inner")
      .shown("GROUPS")
      .in_shell(false);
}

}  // namespace

void describe(Schema<Options::Graduation>& s) {
  s.of("solve::Options::Graduation");
  s.option("graduation", &Options::Graduation::factor,
           "starts with a robust loss as wide as the largest residual and narrows it by this factor every "
           "five iterations; typically 1.4 to 4, 0: off")
      .member("factor")
      .flag("graduate")
      .at_least(0)
      .shown("X")
      .in_shell(false);
  s.option("graduation_iterations", &Options::Graduation::iterations, "iterations for each width of the loss")
      .member("iterations")
      .at_least(1)
      .in_shell(false);
  s.useless(
      "graduation_iterations", [](const Options::Graduation& g) { return g.factor == 0; },
      "it has no effect without {graduation}", "{graduation} above 1");
}

void describe(Schema<Options>& s) {
  constexpr double kMost = 1e9;
  s.of("solve::Options");
  s.option("method", &Options::method, "Levenberg-Marquardt, Gauss-Newton, dogleg, …");
  s.option("linear", &Options::linear, "linear solver of a step");
  s.option("max_iterations", &Options::max_iterations, "maximum number of iterations")
      .at_least(0)
      .at_most(kMost)
      .effect(Effect::extent);
  s.option("function_tolerance", &Options::function_tolerance,
           "terminates when the cost changes by less than this share")
      .at_least(0)
      .shown("X");
  s.option("gradient_tolerance", &Options::gradient_tolerance,
           "terminates when the cosine of the residuals and their tangent space is at most this")
      .at_least(0)
      .shown("X");
  s.option("parameter_tolerance", &Options::parameter_tolerance,
           "terminates when a step is shorter than this share")
      .at_least(0)
      .shown("X");
  s.option("precision", &Options::precision, "mixed: residuals and gradient in f64, the rest in f32");
  s.option("backend", &Options::backend, "auto: problems below {threshold} run on the CPU")
      .or_else("auto in the shell with --device auto");
  s.option("threshold", &Options::threshold, "number of residuals from which a GPU is used")
      .at_least(0)
      .off(-1)
      .or_else("as `bench solve.crossover` measured, else 20000");
  s.option("max_linear_iterations", &Options::max_linear_iterations,
           "iterations of an iterative linear solver per step")
      .at_least(1)
      .at_most(kMost);
  describe_groups(s);
  s.option("initial_damping", &Options::initial_damping, "lambda at the start").above(0).shown("X");
  s.option("damping", &Options::damping, "what lambda multiplies: diag(J^T J) or the identity");
  s.option("batch_size", &Options::batch_size,
           "instances of a residual evaluated at once; fewer need less memory; 0: all")
      .at_least(0)
      .at_most(0x7fffffff)
      .effect(Effect::speed);
  s.option("learning_rate", &Options::learning_rate, "learning rate of " + optimize::first_order_names(", "))
      .above(0)
      .shown("X");
  s.option("momentum", &Options::momentum,
           "momentum of " + optimize::first_order_names(" or ", &optimize::FirstOrderRow::has_momentum))
      .at_least(0)
      .shown("X");
  s.option("weight_decay", &Options::weight_decay,
           "weight decay of " + optimize::first_order_names(" or ", &optimize::FirstOrderRow::has_decay))
      .at_least(0)
      .shown("X");
  s.option("time_limit", &Options::time_limit, "seconds after which no iteration is started; 0: no limit")
      .at_least(0)
      .shown("SECONDS")
      .effect(Effect::extent);
  s.option("parts", &Options::parts, "parts into which the residuals are divided; distributed over the ranks")
      .at_least(1)
      .at_most(1024)
      .in_shell(false);
  s.option("initial_radius", &Options::initial_radius, "initial radius of dogleg").above(0).in_shell(false);
  s.option("forcing", &Options::forcing, "first relative residual of an inexact step")
      .above(0)
      .in_shell(false);
  s.option("lbfgs_history", &Options::lbfgs_history, "steps that lbfgs remembers")
      .at_least(1)
      .at_most(optimize::LbfgsLayout::kMostHistory)
      .in_shell(false);
  s.option("update_values", &Options::update_values,
           "the problem contains the accepted point when the callback is called")
      .effect(Effect::display)
      .in_shell(false);
  s.include(&Options::graduation);
  s.option("checkpoint", &Options::checkpoint,
           "stores the state after each iteration; a run resumes from an existing file")
      .file(Option::Use::output_file)
      .shown("FILE")
      .effect(Effect::display);
  add_method_rules(s);
}

}  // namespace lockstep::solve
