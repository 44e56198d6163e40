// A comparison as JSON.
#include "lockstep/urban/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/urban/documents.hpp"
#include "urban/results/percentiles.hpp"

namespace lockstep::urban {
namespace {

using nlohmann::ordered_json;

ordered_json finite_json(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json numbers_of(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (const double v : values) list.push_back(finite_json(v));
  return list;
}

ordered_json document_of(const Distribution& distribution) {
  ordered_json document;
  for (size_t k = 0; k < distribution.size(); ++k)
    document[std::to_string(static_cast<int>(kShares[k]))] = finite_json(distribution[k]);
  return document;
}

ordered_json document_of(const ChangePlace& p) {
  ordered_json document = {{"change", finite_json(p.after - p.before)},
                           {"before", finite_json(p.before)},
                           {"after", finite_json(p.after)},
                           {"row", p.row},
                           {"col", p.col},
                           {"x", p.x},
                           {"y", p.y}};
  if (!p.time.empty()) document["time"] = p.time;
  return document;
}

ordered_json document_of(const SummaryChange& s) {
  return {{"name", s.name},
          {"title", s.title},
          {"unit", s.unit},
          {"file", s.file.string()},
          {"picture", s.picture.string()},
          {"pixels", s.pixels},
          {"before_mean", finite_json(s.before_mean)},
          {"after_mean", finite_json(s.after_mean)},
          {"mean_change", finite_json(s.mean_change)},
          {"before_percentiles", document_of(s.before)},
          {"after_percentiles", document_of(s.after)},
          {"change_percentiles", document_of(s.change)},
          {"lowest", document_of(s.lowest)},
          {"highest", document_of(s.highest)}};
}

ordered_json document_of(const StressChange& stress) {
  ordered_json classes = ordered_json::array();
  for (const ClassChange& c : stress.classes)
    classes.push_back({{"class", c.name},
                       {"upper", finite_json(c.upper_c)},
                       {"before_m2", c.before_m2},
                       {"after_m2", c.after_m2},
                       {"before_percent", c.before_percent},
                       {"after_percent", c.after_percent},
                       {"hottest_before_m2", c.hottest_before_m2},
                       {"hottest_after_m2", c.hottest_after_m2}});
  return {{"index", stress.index == ComfortIndex::utci ? "utci" : "pet"},
          {"hottest", stress.hottest},
          {"classes", classes}};
}

}  // namespace

nlohmann::ordered_json document_of(const CompareResult& result) {
  ordered_json document = {{"rows", result.rows},
                           {"cols", result.cols},
                           {"pixel_size", result.pixel_size_m},
                           {"steps", result.steps},
                           {"times", result.times},
                           {"differences", ordered_json::array()},
                           {"compared_m2", result.compared_m2},
                           {"before_ground_m2", result.before_ground_m2},
                           {"after_ground_m2", result.after_ground_m2}};
  for (const RunDifference& d : result.differences)
    document["differences"].push_back({{"option", d.option}, {"before", d.before}, {"after", d.after}});
  for (const char* list : {"stress", "summaries", "series"}) document[list] = ordered_json::array();
  for (const StressChange& stress : result.stress) document["stress"].push_back(document_of(stress));
  for (const SummaryChange& s : result.summaries) document["summaries"].push_back(document_of(s));
  for (const OutputChange& o : result.outputs)
    document["series"].push_back({{"name", o.name},
                                  {"title", o.title},
                                  {"unit", o.unit},
                                  {"before_mean", numbers_of(o.before_mean)},
                                  {"after_mean", numbers_of(o.after_mean)},
                                  {"lowest", document_of(o.lowest)},
                                  {"highest", document_of(o.highest)}});
  document["page"] = result.page.string();
  if (!result.warnings.empty()) document["warnings"] = result.warnings;
  return document;
}
std::string to_json(const CompareResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::urban
