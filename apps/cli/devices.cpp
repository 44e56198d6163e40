// `lockstep devices`: every back end, its devices, or why it has none.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/summary.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const DeviceStatus& status) {
  const Limits& limits = status.info.limits;
  ordered_json object = {{"name", status.info.name},
                         {"kind", name(status.info.kind)},
                         {"available", status.available},
                         {"reason", status.reason},
                         {"description", status.info.description},
                         {"software", status.info.software},
                         {"architecture", status.info.architecture},
                         {"multiprocessors", status.info.multiprocessors}};
  object["memory"] = {{"total_bytes", status.memory.total_bytes}, {"free_bytes", status.memory.free_bytes}};
  object["limits"] = ordered_json::object();
  if (status.available) {
    object["limits"] = {{"groups", limits.groups},
                        {"group_lanes", limits.group_lanes},
                        {"buffer_bytes", limits.buffer_bytes},
                        {"binding_bytes", limits.binding_bytes},
                        {"bindings", limits.bindings},
                        {"shared_bytes", limits.shared_bytes},
                        {"f64", limits.f64},
                        {"f16", limits.f16}};
  }
  return object;
}

std::string limit_text(int64_t bytes) {
  return bytes >= INT64_MAX / 2 ? "no limit"
                                : human_bytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

std::string to_text(const DeviceStatus& status) {
  if (!status.available) {
    return fmt::format("{:<10} not available: {}\n",
                       status.info.name.empty() ? name(status.info.kind) : status.info.name, status.reason);
  }
  const Limits& limits = status.info.limits;
  std::string text = fmt::format("{:<10} {}{}\n", status.info.name, status.info.description,
                                 status.info.software ? " (software)" : "");
  if (status.memory.total_bytes > 0) {
    text += fmt::format("{:<10} memory {}, {} free\n", "", limit_text(status.memory.total_bytes),
                        limit_text(status.memory.free_bytes));
  }
  text +=
      fmt::format("{:<10} one buffer {}, one binding {}, {} lanes and {} shared a group, f64 {}, f16 {}\n",
                  "", limit_text(limits.buffer_bytes), limit_text(limits.binding_bytes), limits.group_lanes,
                  limit_text(limits.shared_bytes), limits.f64 ? "yes" : "no", limits.f16 ? "yes" : "no");
  return text;
}

int run(const CommonOptions& common) {
  Session session(common);
  ordered_json result;
  std::string text;
  result["devices"] = ordered_json::array();
  for (const DeviceStatus& status : Device::list()) {
    result["devices"].push_back(to_json(status));
    text += to_text(status);
  }
  print_result(common.json ? json_text(result, 2) : text);
  return 0;
}

}  // namespace

void add_devices(CommandList& commands, CLI::App& root) {
  Command& command = add_command(commands, root, "devices",
                                 "list the devices of each back end, or the reason why it has none");
  add_common(command, "lockstep devices --json");
  command.run = [&command] { return run(command.common); };
}

}  // namespace lockstep::cli
