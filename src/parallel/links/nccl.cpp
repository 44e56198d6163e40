// Buffers of CUDA devices through NCCL, on a stream of its own.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "core/platform/host_name.hpp"
#include "device/cuda/entered.hpp"
#include "parallel/libraries/nccl_api.hpp"
#include "parallel/links/device_link.hpp"

namespace lockstep::parallel {
namespace {

using device::cuda::Driver;
using device::cuda::Entered;
using NcclClock = std::chrono::steady_clock;

void* pointer_to(const Buffer& buffer) { return reinterpret_cast<void*>(buffer.native()); }

class NcclLink final : public DeviceLink {
 public:
  /// By the primary context of the device, which the device uses itself.
  NcclLink(const nccl::Library& library, const Driver& driver, double limit_s)
      : nccl_(library), driver_(driver), limit_s_(limit_s) {}
  ~NcclLink() override {
    const Entered here(driver_, context_, first_);
    // An exchange that some rank never reached would be waited for without a limit.
    if (communicator_ && nccl_.stream_query(stream_) == device::cuda::kNotReady)
      nccl_.abort(std::exchange(communicator_, nullptr));
    if (communicator_) nccl_.destroy(communicator_);
    if (stream_) driver_.stream_destroy(stream_);
    if (context_) driver_.primary_release(device_);
  }

  /// The reason of a failure, or nothing; ranks change to another link together.
  std::string open(int number, int rank, int size, const nccl::UniqueId& id) {
    const auto failed = [](int result) { return result != device::cuda::kSuccess; };
    first_ = number == 0;
    if (failed(driver_.device_get(&device_, number)) || failed(driver_.primary_retain(&context_, device_)))
      return "no context of the CUDA driver";
    const Entered here(driver_, context_, first_);
    if (!here || failed(driver_.stream_create(&stream_, device::cuda::kStreamNonBlocking)))
      return "no stream of the CUDA driver";
    const int result = nccl_.begin(&communicator_, size, id, rank);
    if (result != nccl::kSuccess) communicator_ = nullptr;
    return result == nccl::kSuccess ? std::string() : fmt::format("NCCL: {}", nccl_.error_text(result));
  }

  std::string name() const override {
    int v = 0;
    nccl_.version(&v);
    return fmt::format("NCCL {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  }

  void begin(const Device& device, std::span<const Slice> sends, std::span<const Slice> receives) override {
    const Entered here(driver_, context_, first_);
    device.end_before(reinterpret_cast<NativeStream>(stream_));
    check(nccl_.group_start(), "ncclGroupStart");
    for (const Slice& s : sends)
      check(nccl_.send(pointer_to(s.buffer), size_t(s.buffer.bytes()), nccl::kBytes, s.rank, communicator_,
                       stream_),
            "ncclSend");
    for (const Slice& r : receives)
      check(nccl_.receive(pointer_to(r.buffer), size_t(r.buffer.bytes()), nccl::kBytes, r.rank, communicator_,
                          stream_),
            "ncclRecv");
    check(nccl_.group_end(), "ncclGroupEnd");
    device.begin_after(reinterpret_cast<NativeStream>(stream_));
  }

  void finish() override {
    const Entered here(driver_, context_, first_);
    const auto until = NcclClock::now() + std::chrono::duration<double>(limit_s_);
    for (Pause pause; nccl_.stream_query(stream_) == device::cuda::kNotReady; pause.wait()) {
      int error = nccl::kSuccess;
      if (nccl_.async_error(communicator_, &error) == nccl::kSuccess) check(error, "an exchange");
      if (NcclClock::now() < until) continue;
      nccl_.abort(std::exchange(communicator_, nullptr));
      throw GroupError(fmt::format("an exchange of buffers has not ended for {:g} s", limit_s_), "NCCL",
                       "every rank to reach the same call in that time");
    }
  }

 private:
  void check(int result, const char* call) const {
    if (result != nccl::kSuccess && result != nccl::kInProgress)
      throw GroupError(fmt::format("{} failed: {}", call, nccl_.error_text(result)), "NCCL",
                       "ranks that run and respond");
  }

  const nccl::Library& nccl_;
  const Driver& driver_;
  const double limit_s_;
  device::cuda::DeviceNumber device_ = 0;
  bool first_ = true;
  device::cuda::ContextHandle context_ = nullptr;
  device::cuda::StreamHandle stream_ = nullptr;
  nccl::Communicator communicator_ = nullptr;
};

/// Why this rank cannot use NCCL, or nothing; its device on its host.
std::string why_not(const Device& device) {
  std::string why;
  if (device.info().kind != DeviceKind::cuda)
    return fmt::format("{} is not a CUDA device", device.info().name);
  if (nccl::Library::find(&why)) return {};
  return why;
}

/// The first reason of any rank: all take the same way.
std::string agreed(const Group& group, const std::string& why) {
  const std::vector<Bytes> reasons = group.all_gather(bytes_of(why));
  for (size_t r = 0; r < reasons.size(); ++r)
    if (!reasons[r].empty()) return fmt::format("rank {}: {}", r, text_of(reasons[r]));
  return {};
}

}  // namespace

std::unique_ptr<DeviceLink> make_nccl_link(const Group& group, const Device& device, std::string& why) {
  std::string own = why_not(device);
  // Ranks of a host with one device between them: NCCL refuses that.
  const std::string place = fmt::format("{}/{}", platform::host_name(), device.info().name);
  const std::vector<Bytes> places = group.all_gather(bytes_of(place));
  for (size_t r = 0; r < places.size(); ++r)
    if (own.empty() && static_cast<int>(r) != group.rank() && places[r] == places[size_t(group.rank())])
      own = fmt::format("{} is shared by ranks {} and {}", device.info().name, r, group.rank());
  if (why = agreed(group, own); !why.empty()) return {};

  const nccl::Library& library = *nccl::Library::find(nullptr);
  const Driver& driver = *Driver::find();
  nccl::UniqueId id{};
  if (group.leads() && library.unique_id(&id) != nccl::kSuccess) own = "NCCL has no address for its ranks";
  Bytes shared = bytes_of(std::span<const nccl::UniqueId>(&id, 1));
  group.broadcast(shared);
  if (why = agreed(group, own); !why.empty()) return {};
  std::memcpy(&id, shared.data(), sizeof id);
  auto link = std::make_unique<NcclLink>(library, driver, group.options().wait_limit_s);
  const std::string name = device.info().name;  // "cuda:1"
  own = link->open(std::stoi(name.substr(name.find(':') + 1)), group.rank(), group.size(), id);
  if (why = agreed(group, own); !why.empty()) return {};
  return link;
}

}  // namespace lockstep::parallel
