// `lockstep solve doctor`: what a file's problem tells of itself; text and JSON of a report.
#include "lockstep/solve/doctor.hpp"

#include <fmt/format.h>

#include <fstream>

#include "core/reports/json_text.hpp"
#include "lockstep/solve/documents.hpp"
#include "lockstep/solve/files.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {
namespace {

/// BAL's text begins with the number of its cameras, g2o with a tag.
bool begins_with_number(const std::string& file) {
  std::ifstream in(file);
  char first = 0;
  return in >> first && first >= '0' && first <= '9';
}

std::string text_of(const ProblemReport::Block& b) { return fmt::format("{} {}", b.set, b.number); }
const char* plural(int64_t count) { return count == 1 ? "" : "s"; }

std::string text_of(const ProblemReport::Piece& p) {
  std::string text = fmt::format("  {} block{} from {} on, {} unknown{}", p.blocks, plural(p.blocks),
                                 text_of(p.first), p.unknowns, plural(p.unknowns));
  if (!p.free_directions || *p.free_directions == 0) return text + "\n";
  text += fmt::format(": {} no residual to first order",
                      *p.free_directions == 1 ? "1 direction changes"
                                              : fmt::format("{} directions change", *p.free_directions));
  if (p.gauge) return text + ", of all of its blocks (a gauge): fix() one or add a prior\n";
  for (size_t k = 0; k < p.carriers.size(); ++k) text += (k == 0 ? ", of " : ", ") + text_of(p.carriers[k]);
  return text + "\n";
}

ordered_json json_of(const ProblemReport::Block& b) { return {{"set", b.set}, {"number", b.number}}; }
ordered_json json_of(const std::optional<int64_t>& n) { return n ? ordered_json(*n) : ordered_json(); }

ordered_json json_of(const ProblemReport::Piece& p) {
  ordered_json carriers = ordered_json::array();
  for (const ProblemReport::Block& b : p.carriers) carriers.push_back(json_of(b));
  return {{"blocks", p.blocks},
          {"unknowns", p.unknowns},
          {"first", json_of(p.first)},
          {"touches_held", p.touches_held},
          {"free_directions", json_of(p.free_directions)},
          {"gauge", p.gauge},
          {"carriers", carriers}};
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
  for (const ProblemReport::Idle& i : r.idle)
    idle.push_back({{"terms", i.terms}, {"instance", i.instance}, {"why", i.why}});
  for (const ProblemReport::Duplicate& d : r.duplicates)
    doubles.push_back({{"terms", d.terms},
                       {"instance", d.instance},
                       {"of", {{"terms", d.of.terms}, {"instance", d.of.instance}}}});
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
          {"duplicates", doubles}};
}
std::string to_json(const ProblemReport& report) { return json_text(document_of(report)); }

std::string to_text(const ProblemReport& r) {
  std::string text = fmt::format(
      "{} block{}, {} of them held, with {} unknowns; {} instance{} with {} residuals; cost {:.10g}\n",
      r.blocks, plural(r.blocks), r.held, r.unknowns, r.instances, plural(r.instances), r.residuals, r.cost);
  if (r.well()) return text + "one piece, and its terms hold all of it: nothing to report\n";
  if (r.piece_count > 1) text += fmt::format("{} pieces that no residual connects\n", r.piece_count);
  if (!r.free_directions)
    text += fmt::format("directions that nothing holds: not computed, because of {}\n", r.rank_note);
  else if (*r.free_directions > 0)
    text += fmt::format("{} free direction{}\n", *r.free_directions, plural(*r.free_directions));
  for (const ProblemReport::Piece& p : r.pieces)
    if (r.piece_count > 1 || p.free_directions.value_or(0) > 0) text += text_of(p);
  for (const ProblemReport::Scale& s : r.badly_scaled)
    text += fmt::format(
        "coordinate {} of {}: columns of J of length {:.3g} to {:.3g} in {} block{}, the median is {:.3g}\n",
        s.coordinate, s.set, s.shortest, s.longest, s.blocks, plural(s.blocks), r.median_column);
  if (r.idle_count > 0)
    text += fmt::format("{} instance{} without effect\n", r.idle_count, plural(r.idle_count));
  for (const ProblemReport::Idle& i : r.idle)
    text += fmt::format("  {}, instance {}: {}\n", i.terms, i.instance, i.why);
  if (r.duplicate_count > 0)
    text += fmt::format("{} duplicate{}: blocks and data of an earlier instance\n", r.duplicate_count,
                        plural(r.duplicate_count));
  for (const ProblemReport::Duplicate& d : r.duplicates)
    text += fmt::format("  {}, instance {}: as {}, instance {}\n", d.terms, d.instance, d.of.terms,
                        d.of.instance);
  return text;
}

DoctorResult run(Context& context, const DoctorRun& wanted) {
  schema_of<DoctorRun>().check(&wanted);
  DoctorResult out;
  out.kind = begins_with_number(wanted.file) ? "bal" : "g2o";
  Problem problem = host_stage(out.host_stages, "read", [&] {
    return out.kind == "bal" ? read_bundle(wanted.file, wanted.loss).problem
                             : read_pose_graph(wanted.file, wanted.loss).problem;
  });
  out.report = diagnose(problem, context, wanted.named);
  return out;
}

nlohmann::ordered_json document_of(const DoctorResult& r) {
  ordered_json whole{{"kind", r.kind}};
  whole.update(document_of(r.report));
  return whole;
}
std::string to_json(const DoctorResult& r) { return json_text(document_of(r)); }
std::string to_text(const DoctorResult& r) { return to_text(r.report); }

}  // namespace lockstep::solve
