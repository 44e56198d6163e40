#include "parallel/links/device_link.hpp"

#include <fmt/format.h>

namespace lockstep::parallel {
namespace {

class HostLink final : public DeviceLink {
 public:
  explicit HostLink(Group::State& state) : state_(state) {}
  std::string name() const override { return "host memory"; }
  void begin(const Device& device, std::span<const Slice> sends, std::span<const Slice> receives) override {
    for (const Slice& s : sends) {
      Bytes data(static_cast<size_t>(s.buffer.bytes()));
      device.read(s.buffer, data.data(), s.buffer.bytes());
      state_.transport->send(s.rank, Tag::buffers, std::move(data));
    }
    for (const Slice& r : receives) {
      const Bytes data = state_.receive(r.rank, Tag::buffers).data;
      if (static_cast<int64_t>(data.size()) != r.buffer.bytes())
        throw GroupError(fmt::format("{} bytes from rank {}", data.size(), r.rank), "Group::exchange",
                         fmt::format("{} bytes", r.buffer.bytes()));
      device.write(r.buffer, data.data(), r.buffer.bytes());
    }
  }
  void finish() override {}

 private:
  Group::State& state_;
};

}  // namespace

std::unique_ptr<DeviceLink> make_host_link(Group::State& state) { return std::make_unique<HostLink>(state); }

std::string Group::device_link(const Device& device) const {
  State& s = *state_;
  if (!s.link || s.link_device != device.info().name) {
    s.link_device = device.info().name;
    if (size() > 1) s.link = make_nccl_link(*this, device, s.link_why);
    if (!s.link) s.link = make_host_link(s);
  }
  return s.link_why.empty() ? s.link->name() : fmt::format("{} ({})", s.link->name(), s.link_why);
}

void Group::exchange(const Device& device, std::span<const Slice> sends,
                     std::span<const Slice> receives) const {
  begin_exchange(device, sends, receives);
  finish_exchange();
}

void Group::finish_exchange() const {
  if (state_->link) state_->link->finish();
}

void Group::begin_exchange(const Device& device, std::span<const Slice> sends,
                           std::span<const Slice> receives) const {
  for (const auto& list : {sends, receives})
    for (const Slice& slice : list)
      if (slice.rank < 0 || slice.rank >= size() || slice.rank == rank() || !slice.buffer.contiguous())
        throw InputError(fmt::format("a slice of rank {}", slice.rank), "Group::exchange",
                         "contiguous buffers of other ranks of the group");
  if (size() == 1) return;
  device_link(device);
  state_->link->begin(device, sends, receives);
}

}  // namespace lockstep::parallel
