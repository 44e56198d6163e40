// A page is one rank: there is no library to exchange through.
#include "parallel/links/device_link.hpp"

namespace lockstep::parallel {

std::unique_ptr<DeviceLink> make_nccl_link(const Group&, const Device&, std::string& why) {
  why = "a page has no NCCL";
  return nullptr;
}

}  // namespace lockstep::parallel
