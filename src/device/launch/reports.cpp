// Reports of kernels by check and print_if: read after a launch or a replay, printed, thrown.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/reports/log.hpp"
#include "device/state.hpp"

namespace lockstep::device {

namespace {

using Words = std::array<uint32_t, 1 + ir::kReportSlots * ir::kReportWords>;

/// One record of the buffer.
struct Said {
  uint32_t number;
  std::array<uint32_t, 3> place;  // x, y, z
  uint32_t lane;
  uint64_t bits;
};

std::vector<Said> records(const Words& words) {
  std::vector<Said> list;
  const uint32_t count = std::min<uint32_t>(words[0], ir::kReportSlots);
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t* w = &words[1 + k * ir::kReportWords];
    list.push_back({w[0], {w[1], w[2], w[3]}, w[4], uint64_t(w[5]) | uint64_t(w[6]) << 32});
  }
  const auto key = [](const Said& s) {
    return std::tuple(s.place[2], s.place[1], s.place[0], s.lane, s.number);
  };
  std::sort(list.begin(), list.end(), [&](const Said& a, const Said& b) { return key(a) < key(b); });
  return list;
}

std::string value_text(Type type, uint64_t bits) {
  switch (type) {
    case Type::none: return "";
    case Type::boolean: return bits ? " true" : " false";
    case Type::f32: return fmt::format(" {}", std::bit_cast<float>(uint32_t(bits)));
    case Type::f64: return fmt::format(" {}", std::bit_cast<double>(bits));
    case Type::i32: return fmt::format(" {}", int32_t(bits));
    case Type::i64: return fmt::format(" {}", int64_t(bits));
    default: return fmt::format(" {}", bits);
  }
}

std::string lane_text(const ir::Function& f, const Said& said) {
  const bool points = f.domain == ir::Domain::points;
  std::string text = points ? "point (" : "group (";
  for (int a = 0; a < f.rank; ++a) text += fmt::format("{}{}", a ? ", " : "", said.place[size_t(a)]);
  return text + (points ? ")" : fmt::format("), lane {}", said.lane));
}

}  // namespace

void DeviceState::show_reports(const PendingReports& reports, Queue* queue) {
  Words words{};
  backend->download(queue, *reports.words, 0, words.data(), int64_t(sizeof words));
  if (words[0] == 0) return;
  const ir::Function& f = reports.kernel.function();
  const Said* failed = nullptr;
  int64_t failures = 0;
  const std::vector<Said> list = records(words);
  for (const Said& said : list) {
    if (said.number >= f.reports.size())
      throw InternalError("a report without a check", fmt::format("kernel {}", f.name),
                          "one of the kernel's");
    const ir::Report& report = f.reports[said.number];
    if (report.failure) {
      if (!failed) failed = &said;
      failures += said.number == failed->number;
    } else {
      logging::line(fmt::format("{}: kernel {}, {}: {}{}", ir::place_text(f, report.place), f.name,
                                lane_text(f, said), report.text, value_text(report.type, said.bits)));
    }
  }
  const bool more = words[0] > uint32_t(ir::kReportSlots);
  if (more)
    logging::line(fmt::format("kernel {}: {} more reports", f.name, words[0] - uint32_t(ir::kReportSlots)));
  if (!failed) return;
  const ir::Report& report = f.reports[failed->number];
  throw InputError(
      fmt::format(
          "check failed: {}{} at {}{}", report.text, value_text(report.type, failed->bits),
          lane_text(f, *failed),
          failures > 1 || more ? fmt::format(", in {}{} lanes", more ? "at least " : "", failures) : ""),
      ir::where_of(f, report.place), "the condition to hold in every lane");
}

void DeviceState::keep_reports(const std::shared_ptr<RecordedGraph>& graph,
                               std::vector<PendingReports> reports) {
  const std::lock_guard lock(modules_mutex);
  std::erase_if(reporting_graphs, [](const auto& known) { return known.second.first.expired(); });
  reporting_graphs[graph.get()] = {graph, std::move(reports)};
  graphs_report = true;
}

void DeviceState::show_reports_of(const RecordedGraph& graph, Queue* queue) {
  std::vector<PendingReports> reports;
  {
    const SharedLock<SharedMutex> lock(modules_mutex);
    const auto found = reporting_graphs.find(&graph);
    if (found == reporting_graphs.end() || found->second.first.expired()) return;
    reports = found->second.second;
  }
  for (const PendingReports& one : reports) show_reports(one, queue);
}

}  // namespace lockstep::device
