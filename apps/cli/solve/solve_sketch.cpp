// `lockstep solve sketch`: geometric constraints between points, lines and circles.
#include "solve/sketch/solve_sketch.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/atomic_file.hpp"
#include "lockstep/error.hpp"
#include "solve/sketch/draw_sketch.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;
namespace sketch = solve::sketch;

struct SketchCommand {
  std::string input, out;
  bool allow_conflicts = false;
  SolveOptions solve;
};

std::vector<std::string> names_of(const sketch::SketchResult& result,
                                  const std::vector<int32_t>& constraints) {
  std::vector<std::string> names;
  for (const int32_t c : constraints) names.push_back(result.sketch.constraints[size_t(c)].name);
  return names;
}

// 'a', 'b' and 'c'
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t k = 0; k < names.size(); ++k)
    text += fmt::format("{}'{}'", k == 0 ? "" : k + 1 == names.size() ? " and " : ", ", names[k]);
  return text;
}

void refuse_conflicts(const sketch::SketchResult& result, const std::string& input) {
  if (result.conflicts.empty()) return;
  std::vector<std::string> sets;
  for (const auto& set : result.conflicts) {
    const std::string names = listed(names_of(result, set));
    sets.push_back(set.size() == 1 ? fmt::format("constraint {} cannot hold", names)
                                   : fmt::format("constraints {} contradict each other", names));
  }
  throw InputError(fmt::format("{}", fmt::join(sets, "; ")), input, "constraints that can hold together")
      .with_hint("--allow-conflicts writes the sketch that misses them least");
}

ordered_json describe(const sketch::SketchResult& result) {
  const sketch::Sketch& s = result.sketch;
  ordered_json document{{"sketch", s.name},
                        {"satisfied", result.satisfied},
                        {"degrees_of_freedom", result.freedom.degrees_of_freedom()},
                        {"rank", result.freedom.rank}};
  ordered_json points = ordered_json::object(), circles = ordered_json::object(),
               constraints = ordered_json::array(), redundant = ordered_json::array(),
               conflicts = ordered_json::array();
  for (size_t p = 0; p < s.points.size(); ++p)
    points[s.points[p].name] = {{"at", {s.points[p].x, s.points[p].y}},
                                {"pinned", s.points[p].pinned},
                                {"determined", result.freedom.point_determined[p] != 0}};
  for (size_t c = 0; c < s.circles.size(); ++c)
    circles[s.circles[c].name] = {{"center", s.points[size_t(s.circles[c].center)].name},
                                  {"radius", s.circles[c].radius},
                                  {"determined", result.freedom.circle_determined[c] != 0}};
  for (size_t c = 0; c < s.constraints.size(); ++c)
    constraints.push_back({{"name", s.constraints[c].name},
                           {"kind", sketch::kind_info(s.constraints[c].kind).name},
                           {"implied", s.constraints[c].implied},
                           {"residual", result.residuals[c]}});
  for (const sketch::Redundancy& r : result.freedom.redundant)
    redundant.push_back({{"name", s.constraints[size_t(r.constraint)].name},
                         {"equations", r.rows},
                         {"redundant_equations", r.redundant_rows},
                         {"follows_from", names_of(result, r.follows_from)}});
  for (const auto& set : result.conflicts) conflicts.push_back(names_of(result, set));
  document["size"] = result.size;
  document["points"] = std::move(points);
  document["circles"] = std::move(circles);
  document["constraints"] = std::move(constraints);
  document["redundant"] = std::move(redundant);
  document["conflicts"] = std::move(conflicts);
  return document;
}

std::string report_text(const sketch::SketchResult& result, const solve::Summary& summary) {
  const sketch::Sketch& s = result.sketch;
  const int64_t free = result.freedom.degrees_of_freedom();
  std::string text =
      fmt::format("{} points, {} lines, {} circles, {} constraints: {}\n", s.points.size(), s.lines.size(),
                  s.circles.size(), s.constraints.size(), result.satisfied ? "satisfied" : "not satisfied");
  text += free == 0   ? "fully constrained\n"
          : free == 1 ? "1 degree of freedom\n"
                      : fmt::format("{} degrees of freedom\n", free);
  for (const sketch::Redundancy& r : result.freedom.redundant) {
    text += fmt::format("redundant: '{}'", s.constraints[size_t(r.constraint)].name);
    if (r.redundant_rows < r.rows) text += fmt::format(" ({} of {} equations)", r.redundant_rows, r.rows);
    if (!r.follows_from.empty())
      text += fmt::format(" follows from {}", listed(names_of(result, r.follows_from)));
    text += "\n";
  }
  for (const auto& set : result.conflicts)
    text += fmt::format("contradictory: {}\n", listed(names_of(result, set)));
  return text + outcome(summary) + "\n";
}

int run(const CommonOptions& common, const SketchCommand& command) {
  const std::string suffix = std::filesystem::path(command.out).extension().string();
  if (!command.out.empty() && suffix != ".svg" && suffix != ".png" && suffix != ".toml")
    throw InputError(fmt::format("'{}'", command.out), "--out", "a name that ends in .svg, .png or .toml");
  check_solve_options(command.solve, common);
  check_folder(command.out, "--out");
  if (command.solve.robust != "none")
    throw InputError(fmt::format("'{}'", command.solve.robust), "--robust",
                     "none: constraints hold or do not");
  Session session(common);
  const sketch::Sketch given = session.host_stage("read", [&] { return sketch::read_sketch(command.input); });
  const sketch::SketchResult result =
      sketch::solve_sketch(given, session.context(), minimize_options(session, command.solve));
  if (!command.allow_conflicts) refuse_conflicts(result, command.input);
  ordered_json document = describe(result);
  std::string text = report_text(result, result.summary);
  if (!command.out.empty()) {
    session.host_stage("write", [&] {
      if (suffix == ".toml") {
        write_file(command.out, sketch::format_sketch(result.sketch));
      } else {
        io::write_drawing(command.out, sketch::draw_sketch(result));
      }
    });
    document["out"] = command.out;
    text += fmt::format("sketch: {}\n", command.out);
  }
  return finish_solve(session, command.solve, result.summary, std::move(document), text,
                      given.name.empty() ? command.input : given.name);
}

}  // namespace

void add_solve_sketch(CommandList& commands, CLI::App& parent) {
  Command& command = add_command(commands, parent, "sketch", "points, lines and circles under constraints");
  auto options = std::make_shared<SketchCommand>();
  CLI::App& app = *command.app;
  options->solve.function_tolerance = 1e-12;
  add_positional(app, "FILE", options->input, "a sketch as TOML; docs/sketch.md has the format", true);
  add_file(app, "--out", options->out,
           "a drawing (.svg, .png), or the same sketch with the places found (.toml)");
  add_flag(app, "--allow-conflicts", options->allow_conflicts,
           "write the sketch that misses contradicting constraints least instead of refusing it");
  add_solve_options(app, options->solve);
  add_common(command, "lockstep solve sketch examples/sketches/bracket.toml --out bracket.svg");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
