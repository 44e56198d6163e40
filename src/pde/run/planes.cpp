#include "pde/run/planes.hpp"

#include <cstring>

#include "core/record/identity.hpp"
#include "lockstep/pde/commands.hpp"

namespace lockstep::pde {

Array on_lead(const DividedLoss& loss, const parallel::Group& group, const Array& own) {
  if (group.size() == 1) return own;
  const Array packed = own.packed();
  const std::vector<parallel::Bytes> from = group.gather({packed.data(), packed.data() + packed.bytes()});
  if (!group.leads()) return {};
  Sizes shape = packed.shape();
  const size_t axis = shape.size() - 3;
  size_t rows = 1;
  for (size_t k = 0; k < axis; ++k) rows *= size_t(shape[k]);
  const size_t plane = size_t(packed.bytes()) / (rows * size_t(shape[axis]));
  const auto nz = size_t(shape[axis] = loss.mesh().cells[2]);
  Array whole(packed.storage(), shape);
  std::byte* const to = whole.mutate_raw().data();
  for (int rank = 0; rank < group.size(); ++rank) {
    const parallel::Range planes = loss.own(rank);
    const size_t bytes = size_t(planes.size()) * plane;
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(to + (row * nz + size_t(planes.begin)) * plane, from[size_t(rank)].data() + row * bytes,
                  bytes);
  }
  return whole;
}

void on_lead(const DividedLoss& loss, const parallel::Group& group,
             std::vector<std::pair<std::string, Array>>& own) {
  for (auto& [name, array] : own) array = on_lead(loss, group, array);
}

void expect_same_run(const parallel::Group& group, const Fields& fields, const RunOptions& options) {
  if (group.size() == 1) return;
  record::Identity id("pde");
  for (const Option& option : schema_of<RunOptions>().options())
    id.option(option.name, text_of(option.get(&options)));
  fields.add_to(id);
  group.expect_same("options and arrays", id.to_json());
}

}  // namespace lockstep::pde
