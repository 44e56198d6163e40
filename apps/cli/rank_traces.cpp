#include "rank_traces.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "core/files/atomic_file.hpp"
#include "core/platform/system.hpp"
#include "core/reports/trace.hpp"
#include "io/text/file.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kEvents = "traceEvents";

/// Adds a rank's events, as those of a process with the rank's name and number.
void add_events(ordered_json& to, const ordered_json& from, size_t rank) {
  for (ordered_json event : from.at(kEvents)) {
    event["pid"] = rank + 1;  // process numbers of several hosts may be equal
    if (event.value("name", "") == "process_name")
      event["args"]["name"] = fmt::format("lockstep rank {}", rank);
    to.push_back(std::move(event));
  }
}

}  // namespace

RankTrace::RankTrace()
    : file_(std::filesystem::temp_directory_path() /
            fmt::format("lockstep-{}.trace.json", platform::process_id())) {
  Trace::global().open(file_);
}
RankTrace::~RankTrace() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}
std::string RankTrace::take() {
  Trace::global().close();
  return io::read_text_file(file_);
}

double clock_shift_us(const parallel::Group& group) {
  group.barrier();
  const double own = Trace::now_us();
  return parallel::numbers_of_lead(group, std::vector{own}).at(0) - own;
}

std::string shifted_trace(const std::string& text, double shift_us) {
  ordered_json trace = ordered_json::parse(text);
  for (ordered_json& event : trace.at(kEvents))
    if (const auto time = event.find("ts"); time != event.end()) *time = time->get<double>() + shift_us;
  return trace.dump();
}

void join_traces(const std::filesystem::path& file, const std::vector<std::string>& by_rank) {
  ordered_json whole = ordered_json::parse(io::read_text_file(file)), events = ordered_json::array();
  add_events(events, whole, 0);
  for (size_t rank = 1; rank < by_rank.size(); ++rank)
    if (!by_rank[rank].empty()) add_events(events, ordered_json::parse(by_rank[rank]), rank);
  whole[kEvents] = std::move(events);
  write_file(file, whole.dump() + "\n");
}

}  // namespace lockstep::cli
