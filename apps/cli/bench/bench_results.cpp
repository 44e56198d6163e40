#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "io/series/csv.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

using nlohmann::ordered_json;

ordered_json to_json(const BenchResults& results) {
  ordered_json rows = ordered_json::array();
  for (const BenchRow& r : results.rows) {
    if (!r.skipped.empty()) continue;
    ordered_json row = {{"case", r.name},     {"size", r.size},
                        {"dtype", r.dtype},   {"median_ms", r.median_ms},
                        {"p95_ms", r.p95_ms}, {"mean_ms", r.mean_ms},
                        {"min_ms", r.min_ms}, {"bytes", r.bytes},
                        {"gbps", r.gbps},     {"share_of_copy", r.share_of_copy},
                        {"gflops", r.gflops}, {"iterations", r.iterations}};
    if (r.reference_ms > 0) row["reference_ms"] = r.reference_ms;
    rows.push_back(row);
  }
  ordered_json skipped = ordered_json::array();
  for (const BenchRow& r : results.rows) {
    if (!r.skipped.empty()) skipped.push_back({{"case", r.name}, {"reason", r.skipped}});
  }
  return {{"device", results.device},
          {"numerics", results.numerics},
          {"copy_gbps", results.copy_gbps},
          {"results", rows},
          {"skipped", skipped}};
}

std::string to_csv(const BenchResults& results) {
  std::string text =
      "device,case,size,dtype,median_ms,p95_ms,mean_ms,min_ms,bytes,gbps,share_of_copy,gflops,iterations,"
      "reference_ms\n";
  for (const BenchRow& r : results.rows) {
    if (!r.skipped.empty()) continue;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", io::csv_field(results.device), r.name,
                        r.size, r.dtype, r.median_ms, r.p95_ms, r.mean_ms, r.min_ms, r.bytes, r.gbps,
                        r.share_of_copy, r.gflops, r.iterations, r.reference_ms);
  }
  return text;
}

std::string to_text(const BenchResults& results) {
  std::string text =
      fmt::format("{}: copy {:.1f} GB/s\n{:<34} {:>16} {:>5} {:>11} {:>11} {:>9} {:>8} {:>9} {:>10}\n",
                  results.device, results.copy_gbps, "case", "size", "dtype", "median ms", "p95 ms", "GB/s",
                  "% copy", "GFLOP/s", "reference");
  for (const BenchRow& r : results.rows) {
    if (!r.skipped.empty()) {
      text += fmt::format("{:<34} {:>16} skipped: {}\n", r.name, r.size, r.skipped);
      continue;
    }
    text += fmt::format("{:<34} {:>16} {:>5} {:>11.5g} {:>11.5g} {:>9.4g} {:>8.1f} {:>9.4g}", r.name, r.size,
                        r.dtype, r.median_ms, r.p95_ms, r.gbps, r.share_of_copy * 100, r.gflops);
    text += r.reference_ms > 0 ? fmt::format(" {:>8.2f} x\n", r.reference_ms / r.median_ms) : "\n";
  }
  return text;
}

BenchResults parse_bench(const std::string& text, const std::string& where) {
  const auto document = io::JsonValue::parse(text, where);
  if (!document.json().is_object())
    throw InputError("no JSON object", where, "the JSON that `lockstep bench --out` writes");
  BenchResults results;
  results.device = document.at("device").text();
  const auto numerics = document.find("numerics");
  results.numerics = numerics ? numerics->text() : "exact";
  results.copy_gbps = document.at("copy_gbps").number();
  for (const io::JsonValue& row : document.at("results").items()) {
    BenchRow r;
    r.name = row.at("case").text();
    r.size = row.at("size").text();
    r.dtype = row.at("dtype").text();
    r.median_ms = row.at("median_ms").number();
    const auto least = row.find("min_ms");
    r.min_ms = least ? least->number() : r.median_ms;
    results.rows.push_back(r);
  }
  return results;
}

bool BenchComparison::passed() const {
  return !changes.empty() && unmatched.empty() &&
         std::none_of(changes.begin(), changes.end(), [](const BenchChange& c) { return c.regression; });
}

BenchComparison compare_bench(const BenchResults& older, const BenchResults& newer, double tolerance,
                              const std::string& where) {
  if (older.device != newer.device)
    throw InputError(fmt::format("results of {}", older.device), where,
                     fmt::format("those of {}", newer.device));
  if (older.numerics != newer.numerics)
    throw InputError(fmt::format("results of {} numerics", older.numerics), where,
                     fmt::format("those of {} numerics", newer.numerics));
  BenchComparison comparison;
  for (const BenchRow& now : newer.rows) {
    if (!now.skipped.empty()) continue;
    const auto before = std::find_if(older.rows.begin(), older.rows.end(), [&](const BenchRow& r) {
      return r.name == now.name && r.size == now.size && r.dtype == now.dtype && r.skipped.empty();
    });
    if (before == older.rows.end() || !(before->median_ms > 0)) {
      comparison.unmatched.push_back(fmt::format("{} {} {}", now.name, now.size, now.dtype));
      continue;
    }
    const double ratio = now.median_ms / before->median_ms;
    comparison.changes.push_back(
        {now.name, now.size, now.dtype, before->median_ms, now.median_ms, ratio, ratio > 1 + tolerance});
  }
  return comparison;
}

std::string to_text(const BenchComparison& comparison, const std::string& against, double tolerance) {
  std::string text = fmt::format("against {}\n{:<34} {:>16} {:>11} {:>11} {:>8}\n", against, "case", "size",
                                 "old ms", "new ms", "new/old");
  int64_t regressions = 0;
  for (const BenchChange& c : comparison.changes) {
    text += fmt::format("{:<34} {:>16} {:>11.5g} {:>11.5g} {:>8.3f}{}\n", c.name, c.size, c.old_ms, c.new_ms,
                        c.ratio, c.regression ? "  SLOWER" : "");
    regressions += c.regression;
  }
  for (const std::string& row : comparison.unmatched) text += fmt::format("{}  NOT IN {}\n", row, against);
  return text + fmt::format("{} compared, {} slower by more than {:g} %, {} without a partner\n",
                            comparison.changes.size(), regressions, tolerance * 100,
                            comparison.unmatched.size());
}

ordered_json to_json(const BenchComparison& comparison) {
  ordered_json rows = ordered_json::array();
  for (const BenchChange& c : comparison.changes) {
    rows.push_back({{"case", c.name},
                    {"size", c.size},
                    {"dtype", c.dtype},
                    {"old_ms", c.old_ms},
                    {"new_ms", c.new_ms},
                    {"ratio", c.ratio},
                    {"regression", c.regression}});
  }
  return rows;
}

}  // namespace lockstep::cli
