// The device of a rank.
#include <fmt/format.h>

#include <algorithm>

#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {

bool asks_all(std::string_view names) { return names == "cuda:all"; }

int cuda_devices() {
  const std::vector<DeviceStatus> all = Device::list();
  return static_cast<int>(std::ranges::count_if(all, [](const DeviceStatus& status) {
    return status.info.kind == DeviceKind::cuda && status.available;
  }));
}

std::string device_of_rank(const Group& group, const std::string& names, bool share_devices) {
  if (group.size() == 1) return asks_all(names) ? "cuda" : names;
  const int devices = names == "cpu" || names == "interp" ? 0 : cuda_devices();
  const bool automatic = names == "auto", every = automatic || names == "cuda" || asks_all(names);
  std::string own = names, why;
  int room = 0;  // ranks of this host that get a device of their own; 0: any number
  if (every && (devices > 0 || !automatic)) {
    room = std::max(devices, 1);
    own = devices > 0 ? fmt::format("cuda:{}", group.local_rank() % devices) : std::string("cuda");
  } else if (names.starts_with("cuda:") || names.starts_with("webgpu")) {
    room = 1;
  } else if (automatic) {
    own = "cpu";
  }
  if (room > 0 && group.local_size() > room && !share_devices)
    why = fmt::format("{} ranks for {} device{} ({})", group.local_size(), room, room > 1 ? "s" : "", names);
  // The ranks of another host may have found the fault.
  for (const Bytes& bytes : group.all_gather(bytes_of(why)))
    if (!bytes.empty())
      throw GroupError(std::string(text_of(bytes)), "--device",
                       "a device for each rank of a host, or --share-devices")
          .on_every_rank();
  return own;
}

}  // namespace lockstep::parallel
