#include "verify_gradients.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cli {

nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

namespace {
/// The distance of another derivative from that of forward mode, as a share of their scale.
double distance_of(const KernelGradientCheck& c, double other) {
  return std::fabs(c.forward - other) / (c.scale > 0 ? c.scale : 1);
}
}  // namespace

void GradientOutcome::take(const GradientRow& row) {
  const auto set_aside = [&](nlohmann::ordered_json& list, std::string_view word, const std::string& reason) {
    if (!seen_.insert(row.kernel).second) return;
    list.push_back({{"kernel", row.kernel}, {"case", row.name}, {"reason", reason}});
    lines_ += fmt::format("{}  {:<44} {}\n", word, row.kernel, reason);
  };
  if (!row.left_out.empty()) return set_aside(left_out_, "left", row.left_out);
  if (!row.rejected.empty()) return set_aside(rejected_, "none", row.rejected);
  ++(row.pass ? passed : failed);
  const KernelGradientCheck& c = row.check;
  const double modes = distance_of(c, c.reverse), difference = distance_of(c, c.difference);
  const std::optional<double> wide =
      row.wide ? std::optional(distance_of(*row.wide, row.wide->reverse)) : std::nullopt;
  rows_.push_back({{"kernel", row.kernel},
                   {"case", row.name},
                   {"size", row.size},
                   {"forward", json_number(c.forward)},
                   {"reverse", json_number(c.reverse)},
                   {"modes", json_number(modes)},
                   {"modes_f64", wide ? json_number(*wide) : nlohmann::ordered_json()},
                   {"difference", json_number(difference)},
                   {"same_bits", row.same_bits},
                   {"pass", row.pass}});
  lines_ += fmt::format("{:<4}  {:<44} {:>14} {:>9.2g} {:>9} {:>9.2g} {:>5} {}\n", row.pass ? "ok" : "FAIL",
                        row.kernel, row.size, modes, wide ? fmt::format("{:.2g}", *wide) : "-", difference,
                        row.same_bits ? "equal" : "DIFFER", row.name);
}

std::string GradientOutcome::table() const {
  return fmt::format("{:<4}  {:<44} {:>14} {:>9} {:>9} {:>9} {:>5} {}\n", "", "kernel", "size", "modes",
                     "in f64", "numeric", "bits", "case") +
         lines_;
}

}  // namespace lockstep::cli
