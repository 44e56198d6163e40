#include "forecast/train/ranks/parted_model.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::forecast {

PartedModel::PartedModel(nn::Network& network, int64_t parts, parallel::Group group)
    : network_(network), parts_(parts), group_(std::move(group)) {
  const Buffer parameters = network.parameters();
  const int64_t length = parameters.elements() + 1;
  mine_ = device().allocate(parameters.storage(),
                            {std::max<int64_t>(parallel::share(parts, group_).size(), 1), length});
  total_ = device().allocate(parameters.storage(), {length});
}

void PartedModel::launch_gradient(const nn::Batch& batch, const Buffer& loss, uint64_t step) {
  const int64_t n = gradient().elements();
  const parallel::Range own = parallel::share(parts_, group_);
  const auto rows_of = [&](const Buffer& all, const parallel::Range& rows) {
    const int64_t width = all.elements() / batch.size;
    return all.reshape({batch.size, width}).rows(rows.begin, rows.size());
  };
  for (int64_t part = own.begin; part < own.end; ++part) {
    const parallel::Range rows = parallel::share(batch.size, int(part), int(parts_));
    const Buffer row = mine_.rows(part - own.begin, 1).reshape({n + 1});
    network_.launch_gradient(
        {rows_of(batch.inputs, rows), rows_of(batch.targets, rows), rows.size(), rows.begin, batch.size},
        row.rows(n, 1), step);
    device().copy(network_.gradient(), row.rows(0, n));
  }
  group_.sum(device(), parts_, mine_, total_);
  device().copy(total_.rows(0, n), network_.gradient());
  device().copy(total_.rows(n, 1), loss.reshape({1}));
}

}  // namespace lockstep::forecast
