// A page is one rank: there is no library to exchange through, and nothing to join or to compare.
#include "parallel/links/device_link.hpp"
#include "pde/run/planes.hpp"

namespace lockstep {

std::unique_ptr<parallel::DeviceLink> parallel::make_nccl_link(const Group&, const Device&,
                                                               std::string& why) {
  why = "a page has no NCCL";
  return nullptr;
}

namespace pde {

Array on_lead(const DividedLoss&, const parallel::Group&, const Array& own) { return own; }
void on_lead(const DividedLoss&, const parallel::Group&, std::vector<std::pair<std::string, Array>>&) {}
void expect_same_run(const parallel::Group&, const Fields&, const RunOptions&) {}

}  // namespace pde

}  // namespace lockstep
