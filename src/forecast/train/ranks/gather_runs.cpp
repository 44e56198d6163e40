#include "forecast/train/ranks/gather_runs.hpp"

#include <nlohmann/json.hpp>
#include <span>

namespace lockstep::forecast {
namespace {

using nlohmann::json;

json packed(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }
std::optional<double> optional_of(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

json packed(const TrainRun& run) {
  json log = json::array();
  for (const LogRow& r : run.log)
    log.push_back({r.step, r.train_loss, r.rate, packed(r.val_loss), packed(r.val_accuracy), r.seconds,
                   r.jumps, r.accepted});
  return {run.seed,    run.steps, run.resumed_at, run.val_loss, run.seconds,    packed(run.accuracy),
          run.reached, run.jumps, run.accepted,   run.figures,  std::move(log), run.parameters};
}
TrainRun unpacked(const json& j) {
  TrainRun run{j[0], j[1], j[2], j[3], j[4], optional_of(j[5]), j[6], j[7], j[8], j[9], {}, j[11]};
  for (const json& r : j[10])
    run.log.push_back({r[0], r[1], r[2], optional_of(r[3]), optional_of(r[4]), r[5], r[6], r[7]});
  return run;
}

}  // namespace

std::vector<TrainRun> gather_runs(const parallel::Group& group, const std::vector<TrainRun>& mine) {
  json list = json::array();
  for (const TrainRun& run : mine) list.push_back(packed(run));
  const std::vector<uint8_t> numbers = json::to_cbor(list);
  std::vector<TrainRun> all;
  for (const parallel::Bytes& from : group.gather(parallel::bytes_of(std::span<const uint8_t>(numbers)))) {
    const auto* first = reinterpret_cast<const char*>(from.data());
    for (const json& run : json::from_cbor(first, first + from.size())) all.push_back(unpacked(run));
  }
  return all;
}

}  // namespace lockstep::forecast
