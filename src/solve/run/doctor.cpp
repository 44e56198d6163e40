// `lockstep solve doctor`: a report on the problem of a file, as text and JSON.
#include "lockstep/solve/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "io/text/parse_file.hpp"
#include "lockstep/solve/documents.hpp"
#include "lockstep/solve/files.hpp"
#include "solve/diagnose/influence.hpp"
#include "solve/run/fit_inputs.hpp"

namespace lockstep::solve {
namespace {

/// BAL's text begins with the number of its cameras, g2o with a tag.
bool begins_with_number(const std::string& file) {
  return io::parse_packed_file(file, "a pose graph in g2o's format or a bundle adjustment problem in BAL's",
                               [](const std::string& text, const std::string&) {
                                 const size_t first = text.find_first_not_of(" \t\r\n");
                                 return first != text.npos && text[first] >= '0' && text[first] <= '9';
                               });
}

std::string text_of(const ProblemReport::Block& b) { return fmt::format("{} {}", b.set, b.number); }
const char* plural(int64_t count) { return count == 1 ? "" : "s"; }

std::string text_of(const ProblemReport::Piece& p) {
  std::string text = fmt::format("  {} block{} from {} on, {} unknown{}", p.blocks, plural(p.blocks),
                                 text_of(p.first), p.unknowns, plural(p.unknowns));
  if (!p.weak.empty()) {
    text += fmt::format(": one direction is determined {:.0e} times worse than another", 1 / p.weakest);
    for (size_t k = 0; k < p.weak.size(); ++k) text += (k == 0 ? ", of " : ", ") + text_of(p.weak[k]);
  }
  if (!p.free_directions || *p.free_directions == 0) return text + "\n";
  text += fmt::format(": {} no residual to first order",
                      *p.free_directions == 1 ? "1 direction changes"
                                              : fmt::format("{} directions change", *p.free_directions));
  if (p.gauge) return text + ", of all of its blocks (a gauge): fix() one or add a prior\n";
  for (size_t k = 0; k < p.carriers.size(); ++k) text += (k == 0 ? ", of " : ", ") + text_of(p.carriers[k]);
  return text + "\n";
}

std::string text_of(const ReportedInstance& i) {
  return fmt::format("{}, instance {}{}", i.terms, i.instance,
                     i.line > 0 ? fmt::format(" (line {})", i.line) : "");
}
std::string text_of(const InstanceInfluence& i) {
  if (i.checked == 0)
    return fmt::format("  {}: leverage 1, nothing else measures what it does\n",
                       text_of(static_cast<const ReportedInstance&>(i)));
  return fmt::format("  {}: {:.3g} standard deviations, leverage {:.3g}, Cook's distance {:.3g}\n",
                     text_of(static_cast<const ReportedInstance&>(i)), i.studentized, i.leverage, i.cook);
}
/// A line that says what they are, and one for each.
std::string text_of(const char* what, int64_t count, const std::vector<InstanceInfluence>& list) {
  std::string text = count > 0 ? fmt::format("{} instance{} {}\n", count, plural(count), what) : "";
  for (const InstanceInfluence& i : list) text += text_of(i);
  return text;
}
std::string influence_text(const ProblemReport& r) {
  constexpr double kFar = 0.01;  // of the cost
  if (!r.influence_note.empty())
    return fmt::format("leverage and outliers: not computed, because of {}\n", r.influence_note);
  std::string text;
  if (r.outlier_count + r.influential_count > 0 && r.step_gain > kFar)
    text = fmt::format(
        "the values are not a minimum: a step would lower the cost by {:.0f} %; outliers are those after it, "
        "so minimise first\n",
        100 * r.step_gain);
  return text +
         text_of("that the others contradict (outliers at 5 % over all instances)", r.outlier_count,
                 r.outliers) +
         text_of("without which the estimate moves by more than its uncertainty (Cook's distance above 1)",
                 r.influential_count, r.influential) +
         text_of("of high leverage, which the others hardly check", r.lever_count, r.levers);
}

ordered_json json_of(const ReportedInstance& i) {
  ordered_json out{{"terms", i.terms}, {"instance", i.instance}};
  if (i.line > 0) out["line"] = i.line;
  return out;
}
ordered_json json_of(const std::vector<InstanceInfluence>& list) {
  ordered_json out = ordered_json::array();
  for (const InstanceInfluence& i : list) {
    ordered_json one = json_of(i);
    one.update({{"leverage", i.leverage},
                {"checked", i.checked},
                {"studentized", i.studentized},
                {"probability", i.probability},
                {"cook", i.cook}});
    out.push_back(std::move(one));
  }
  return out;
}

ordered_json json_of(const ProblemReport::Block& b) { return {{"set", b.set}, {"number", b.number}}; }
ordered_json json_of(const std::optional<int64_t>& n) { return n ? ordered_json(*n) : ordered_json(); }

ordered_json json_of(const ProblemReport::Piece& p) {
  ordered_json carriers = ordered_json::array(), weak = ordered_json::array();
  for (const ProblemReport::Block& b : p.carriers) carriers.push_back(json_of(b));
  for (const ProblemReport::Block& b : p.weak) weak.push_back(json_of(b));
  return {{"blocks", p.blocks},
          {"unknowns", p.unknowns},
          {"first", json_of(p.first)},
          {"touches_held", p.touches_held},
          {"free_directions", json_of(p.free_directions)},
          {"gauge", p.gauge},
          {"carriers", carriers},
          {"weakest", p.weakest},
          {"weak", weak}};
}

}  // namespace

nlohmann::ordered_json document_of(const ProblemReport& r) {
  ordered_json pieces = ordered_json::array(), scaled = pieces, idle = pieces, doubles = pieces;
  for (const ProblemReport::Piece& p : r.pieces) pieces.push_back(json_of(p));
  for (const ProblemReport::Scale& s : r.badly_scaled)
    scaled.push_back({{"set", s.set},
                      {"coordinate", s.coordinate},
                      {"blocks", s.blocks},
                      {"shortest", s.shortest},
                      {"longest", s.longest}});
  for (const ProblemReport::Idle& i : r.idle) idle.push_back(json_of(i)), idle.back()["why"] = i.why;
  for (const ProblemReport::Duplicate& d : r.duplicates)
    doubles.push_back(json_of(d)), doubles.back()["of"] = json_of(d.of);
  return {{"well", r.well()},
          {"blocks", r.blocks},
          {"held", r.held},
          {"unknowns", r.unknowns},
          {"instances", r.instances},
          {"residuals", r.residuals},
          {"energies", r.energies},
          {"cost", r.cost},
          {"piece_count", r.piece_count},
          {"pieces", pieces},
          {"free_directions", json_of(r.free_directions)},
          {"rank_note", r.rank_note},
          {"median_column", r.median_column},
          {"badly_scaled", scaled},
          {"idle_count", r.idle_count},
          {"idle", idle},
          {"duplicate_count", r.duplicate_count},
          {"duplicates", doubles},
          {"influence_note", r.influence_note},
          {"step_gain", r.step_gain},
          {"outlier_count", r.outlier_count},
          {"outliers", json_of(r.outliers)},
          {"influential_count", r.influential_count},
          {"influential", json_of(r.influential)},
          {"lever_count", r.lever_count},
          {"levers", json_of(r.levers)}};
}
std::string to_json(const ProblemReport& report) { return json_text(document_of(report)); }

std::string to_text(const ProblemReport& r) {
  std::string text = fmt::format(
      "{} block{}, {} of them held, with {} unknowns; {} instance{} with {} residuals; cost {:.10g}\n",
      r.blocks, plural(r.blocks), r.held, r.unknowns, r.instances, plural(r.instances), r.residuals, r.cost);
  const std::string influence = influence_text(r);
  if (r.well())
    return text + "one piece, and its terms hold all of it" +
           (influence.empty() ? ": nothing to report\n" : "\n") + influence;
  if (r.piece_count > 1) text += fmt::format("{} pieces that no residual connects\n", r.piece_count);
  if (!r.free_directions)
    text += fmt::format("directions that nothing holds: not computed, because of {}\n", r.rank_note);
  else if (*r.free_directions > 0)
    text += fmt::format("{} free direction{}\n", *r.free_directions, plural(*r.free_directions));
  for (const ProblemReport::Piece& p : r.pieces)
    if (r.piece_count > 1 || p.free_directions.value_or(0) > 0 || !p.weak.empty()) text += text_of(p);
  for (const ProblemReport::Scale& s : r.badly_scaled)
    text += fmt::format(
        "coordinate {} of {}: columns of J of length {:.3g} to {:.3g} in {} block{}, the median is {:.3g}\n",
        s.coordinate, s.set, s.shortest, s.longest, s.blocks, plural(s.blocks), r.median_column);
  if (r.idle_count > 0)
    text += fmt::format("{} instance{} without effect\n", r.idle_count, plural(r.idle_count));
  for (const ProblemReport::Idle& i : r.idle) text += fmt::format("  {}: {}\n", text_of(i), i.why);
  if (r.duplicate_count > 0)
    text += fmt::format("{} duplicate{}: blocks and data of an earlier instance\n", r.duplicate_count,
                        plural(r.duplicate_count));
  for (const ProblemReport::Duplicate& d : r.duplicates)
    text += fmt::format("  {}: as {}\n", text_of(d), text_of(d.of));
  return text + influence;
}

namespace {

using Lines = std::map<std::string, std::vector<int64_t>>;

void add_line(ReportedInstance& i, const Lines& lines) {
  if (const auto of = lines.find(i.terms); of != lines.end() && size_t(i.instance) < of->second.size())
    i.line = of->second[size_t(i.instance)];
}
void add_lines(ProblemReport& r, const Lines& lines) {
  for (std::vector<InstanceInfluence>* list : {&r.outliers, &r.influential, &r.levers})
    for (InstanceInfluence& i : *list) add_line(i, lines);
  for (ProblemReport::Idle& i : r.idle) add_line(i, lines);
  for (ProblemReport::Duplicate& d : r.duplicates) add_line(d, lines), add_line(d.of, lines);
}

/// The problem of a table, and what the fit says of its parameters.
Problem fit_of(const DoctorRun& wanted, Context& context, Lines& lines, std::optional<Influence>& influence,
               DoctorResult& out) {
  constexpr double kCorrelated = 0.99;
  check_fit(wanted);
  const bool of_files = wanted.given.empty();
  const auto file_of = [&](size_t k) { return k == 0 ? wanted.file : wanted.others[k - 1]; };
  std::vector<std::vector<int64_t>> lines_of_tables;  // empty for tables of arrays
  const std::vector<io::CsvTable> tables = host_stage(out.host_stages, "read", [&] {
    std::vector<io::CsvTable> read = read_tables(wanted);
    for (size_t k = 0; of_files && k < read.size(); ++k) lines_of_tables.push_back(lines_of_rows(file_of(k)));
    return read;
  });
  FitOptions options = fit_options(wanted, tables[0]);
  options.loss = wanted.loss, options.options.backend = Placement::automatic;
  for (size_t k = 0; k < tables.size(); ++k) {
    std::string name = of_files ? file_name(file_of(k)) : fmt::format("data set {}", k + 1);
    if (std::ranges::count(options.terms, name) > 0) name += fmt::format(" ({})", k + 1);
    if (of_files) lines[name] = std::move(lines_of_tables[k]);
    options.terms.push_back(std::move(name));
  }
  FittedProblem fitted = fitted_problem(tables, options, context);
  FitReport& fit = out.fit.emplace();
  FitResult& r = fitted.result;
  fit.termination = r.summary.termination;
  const size_t count = r.parameters.size();
  const std::vector<double> correlations = correlations_by(r.covariance, count);
  for (size_t p = 0; p < count && !correlations.empty(); ++p)
    for (size_t q = p + 1; q < count; ++q)
      if (std::abs(correlations[p * count + q]) > kCorrelated)
        fit.correlated.push_back({r.parameters[p], r.parameters[q], correlations[p * count + q]});
  std::ranges::stable_sort(fit.correlated, std::ranges::greater(),
                           [](const FitReport::Pair& pair) { return std::abs(pair.correlation); });
  fit.parameters = std::move(r.parameters), fit.values = std::move(r.values);
  fit.at_bound = std::move(r.at_bound), fit.undetermined = std::move(r.undetermined);
  out.report = diagnose(fitted.problem, context, wanted.named, influence);
  for (ProblemReport::Scale& scale : out.report.badly_scaled)
    scale.set = fitted.free[size_t(scale.coordinate)], scale.coordinate = 0;
  return std::move(fitted.problem);
}

/// The file of all instances' influence, as diagnose() gave it. Without it, throws why there is none.
void write_influence(const DoctorRun& wanted, const Problem& problem, Context& context, const Lines& lines,
                     std::optional<Influence> influence, DoctorResult& out) {
  if (wanted.influence.empty()) return;
  if (!influence) influence = influence_by_instance(problem, context);
  std::string text = "term,instance,line,leverage,studentized,cook\n";
  for (InstanceInfluence& i : influence->instances) {
    add_line(i, lines);
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{}\n", io::csv_field(i.terms), i.instance,
                   i.line, i.leverage, i.studentized, i.cook);
  }
  host_stage(out.host_stages, "influence", [&] { write_file(wanted.influence, text); });
  out.files.emplace_back("influence_file", wanted.influence);
}

std::string fit_text(const FitReport& fit) {
  std::string text =
      fmt::format("parameters at {} ({})\n",
                  converged(fit.termination) ? "the minimum" : "the end of a fit that did not converge",
                  name(fit.termination));
  for (size_t p = 0; p < fit.parameters.size(); ++p) {
    const auto among = [&](const std::vector<std::string>& list) {
      return std::ranges::find(list, fit.parameters[p]) != list.end();
    };
    text += fmt::format("  {} = {:.10g}{}\n", fit.parameters[p], fit.values[p],
                        among(fit.undetermined) ? ": the data do not determine it"
                        : among(fit.at_bound)   ? ": at its bound"
                                                : "");
  }
  for (const FitReport::Pair& pair : fit.correlated)
    text += fmt::format("{} and {} are correlated by {:.6f}: the data hardly separate them\n", pair.first,
                        pair.second, pair.correlation);
  return text;
}
ordered_json json_of(const FitReport& fit) {
  ordered_json values = ordered_json::object(), correlated = ordered_json::array();
  for (size_t p = 0; p < fit.parameters.size(); ++p) values[fit.parameters[p]] = fit.values[p];
  for (const FitReport::Pair& pair : fit.correlated)
    correlated.push_back({{"first", pair.first}, {"second", pair.second}, {"correlation", pair.correlation}});
  return {{"parameters", values},
          {"termination", name(fit.termination)},
          {"at_bound", fit.at_bound},
          {"undetermined", fit.undetermined},
          {"correlated", correlated}};
}

}  // namespace

DoctorResult run(Context& context, const DoctorRun& wanted) {
  check_run(wanted);
  if (wanted.model.empty() && wanted.file.ends_with(".csv"))
    throw wrong<DoctorRun>("file", fmt::format("{}, a table without a formula", wanted.file),
                           "{model} and {y} too, or a file of a problem");
  DoctorResult out;
  Lines lines;
  Problem problem;
  std::optional<Influence> influence;
  if (!wanted.model.empty()) {
    out.kind = "fit";
    problem = fit_of(wanted, context, lines, influence, out);
  } else {
    out.kind = begins_with_number(wanted.file) ? "bal" : "g2o";
    const auto take = [&](auto file) { problem = std::move(file.problem), lines = std::move(file.lines); };
    host_stage(out.host_stages, "read", [&] {
      out.kind == "bal" ? take(read_bundle(wanted.file, wanted.loss))
                        : take(read_pose_graph(wanted.file, wanted.loss));
    });
    out.report = diagnose(problem, context, wanted.named, influence);
  }
  add_lines(out.report, lines);
  write_influence(wanted, problem, context, lines, std::move(influence), out);
  return out;
}

nlohmann::ordered_json document_of(const DoctorResult& r) {
  ordered_json whole{{"kind", r.kind}};
  if (r.fit) whole["fit"] = json_of(*r.fit);
  whole.update(document_of(r.report));
  for (const auto& [what, file] : r.files) whole[what] = file;
  return whole;
}
std::string to_json(const DoctorResult& r) { return json_text(document_of(r)); }
std::string to_text(const DoctorResult& r) { return (r.fit ? fit_text(*r.fit) : "") + to_text(r.report); }

}  // namespace lockstep::solve
