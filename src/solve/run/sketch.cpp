// Geometric constraints between points, lines and circles, from a file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/run/common.hpp"
#include "solve/sketch/draw_sketch.hpp"
#include "solve/sketch/solve_sketch.hpp"

namespace lockstep::solve {
namespace {

std::vector<std::string> names_of(const sketch::Sketch& sketch, const std::vector<int32_t>& constraints) {
  std::vector<std::string> names;
  for (const int32_t c : constraints) names.push_back(sketch.constraints[size_t(c)].name);
  return names;
}

// 'a', 'b' and 'c'
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t k = 0; k < names.size(); ++k)
    text += fmt::format("{}'{}'", k == 0 ? "" : k + 1 == names.size() ? " and " : ", ", names[k]);
  return text;
}

void refuse_conflicts(const SketchRunResult& result, const std::string& file) {
  if (result.conflicts.empty()) return;
  std::vector<std::string> sets;
  for (const std::vector<std::string>& names : result.conflicts)
    sets.push_back(names.size() == 1 ? fmt::format("constraint {} cannot hold", listed(names))
                                     : fmt::format("constraints {} contradict each other", listed(names)));
  throw InputError(fmt::format("{}", fmt::join(sets, "; ")), file, "constraints that can hold together")
      .with_hint("--allow-conflicts writes the sketch that misses them least");
}

SketchRunResult result_of(const sketch::SketchResult& solved) {
  const sketch::Sketch& s = solved.sketch;
  SketchRunResult out;
  out.summary = solved.summary;
  out.name = s.name;
  out.satisfied = solved.satisfied;
  out.degrees_of_freedom = solved.freedom.degrees_of_freedom();
  out.rank = solved.freedom.rank;
  out.lines = int64_t(s.lines.size());
  out.size = solved.size;
  for (size_t p = 0; p < s.points.size(); ++p)
    out.points.push_back({s.points[p].name, s.points[p].x, s.points[p].y, s.points[p].pinned,
                          solved.freedom.point_determined[p] != 0});
  for (size_t c = 0; c < s.circles.size(); ++c)
    out.circles.push_back({s.circles[c].name, s.points[size_t(s.circles[c].center)].name, s.circles[c].radius,
                           solved.freedom.circle_determined[c] != 0});
  for (size_t c = 0; c < s.constraints.size(); ++c)
    out.constraints.push_back({s.constraints[c].name,
                               std::string(sketch::kind_info(s.constraints[c].kind).name),
                               s.constraints[c].implied, solved.residuals[c]});
  for (const sketch::Redundancy& r : solved.freedom.redundant)
    out.redundant.push_back(
        {s.constraints[size_t(r.constraint)].name, r.rows, r.redundant_rows, names_of(s, r.follows_from)});
  for (const auto& set : solved.conflicts) out.conflicts.push_back(names_of(s, set));
  return out;
}

}  // namespace

SketchRun::SketchRun() { options.function_tolerance = 1e-12; }

SketchRunResult run(Context& context, const SketchRun& wanted) {
  const std::string suffix = std::filesystem::path(wanted.out).extension().string();
  if (!wanted.out.empty() && suffix != ".svg" && suffix != ".png" && suffix != ".toml")
    throw wrong<SketchRun>("out", fmt::format("'{}'", wanted.out), "a name that ends in .svg, .png or .toml");
  check_run(wanted);
  if (wanted.loss.kind != RobustLoss::Kind::none)
    throw wrong<SketchRun>("loss", fmt::format("'{}'", to_text(wanted.loss)),
                           "none: constraints hold or do not");
  RunResult stages;
  const sketch::Sketch given =
      host_stage(stages.host_stages, "read", [&] { return sketch::read_sketch(wanted.file); });
  const sketch::SketchResult solved = sketch::solve_sketch(given, context, observed(wanted.options));
  SketchRunResult out = result_of(solved);
  out.host_stages = std::move(stages.host_stages);
  if (!wanted.allow_conflicts) refuse_conflicts(out, wanted.file);
  if (!wanted.out.empty()) {
    host_stage(out.host_stages, "write", [&] {
      if (suffix == ".toml")
        write_file(wanted.out, sketch::format_sketch(solved.sketch));
      else
        io::write_drawing(wanted.out, sketch::draw_sketch(solved));
    });
    wrote(out, "out", wanted.out);
  }
  finish(out, wanted, given.name.empty() ? wanted.file : given.name);
  return out;
}

nlohmann::ordered_json document_of(const SketchRunResult& r) {
  ordered_json points = ordered_json::object(), circles = ordered_json::object(),
               constraints = ordered_json::array(), redundant = ordered_json::array();
  for (const auto& p : r.points)
    points[p.name] = {{"at", {p.x, p.y}}, {"pinned", p.pinned}, {"determined", p.determined}};
  for (const auto& c : r.circles)
    circles[c.name] = {{"center", c.center}, {"radius", c.radius}, {"determined", c.determined}};
  for (const auto& c : r.constraints)
    constraints.push_back(
        {{"name", c.name}, {"kind", c.kind}, {"implied", c.implied}, {"residual", c.residual}});
  for (const auto& c : r.redundant)
    redundant.push_back({{"name", c.name},
                         {"equations", c.equations},
                         {"redundant_equations", c.redundant_equations},
                         {"follows_from", c.follows_from}});
  return whole({{"sketch", r.name},
                {"satisfied", r.satisfied},
                {"degrees_of_freedom", r.degrees_of_freedom},
                {"rank", r.rank},
                {"size", r.size},
                {"points", std::move(points)},
                {"circles", std::move(circles)},
                {"constraints", std::move(constraints)},
                {"redundant", std::move(redundant)},
                {"conflicts", r.conflicts}},
               r);
}
std::string to_json(const SketchRunResult& r) { return json_text(document_of(r)); }

std::string to_text(const SketchRunResult& r) {
  std::string text =
      fmt::format("{} points, {} lines, {} circles, {} constraints: {}\n", r.points.size(), r.lines,
                  r.circles.size(), r.constraints.size(), r.satisfied ? "satisfied" : "not satisfied");
  text += r.degrees_of_freedom == 0   ? "fully constrained\n"
          : r.degrees_of_freedom == 1 ? "1 degree of freedom\n"
                                      : fmt::format("{} degrees of freedom\n", r.degrees_of_freedom);
  for (const auto& c : r.redundant) {
    text += fmt::format("redundant: '{}'", c.name);
    if (c.redundant_equations < c.equations)
      text += fmt::format(" ({} of {} equations)", c.redundant_equations, c.equations);
    if (!c.follows_from.empty()) text += fmt::format(" follows from {}", listed(c.follows_from));
    text += "\n";
  }
  for (const auto& names : r.conflicts) text += fmt::format("contradictory: {}\n", listed(names));
  text += outcome(r.summary) + "\n";
  for (const auto& [what, file] : r.files)
    if (what == "out") text += fmt::format("sketch: {}\n", file);
  return text;
}

}  // namespace lockstep::solve
