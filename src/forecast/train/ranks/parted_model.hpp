// Data-parallel gradients: a batch is cut into fixed parts, ranks compute whole ones, and these are added along a tree.
#pragma once

#include "lockstep/nn/network.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::forecast {

/// The network with gradients that are sums over `parts` parts of each batch: their bits depend on the number of parts, not
/// on that of ranks. launch_gradient() is collective where there are several ranks.
class PartedModel final : public nn::TrainableModel {
 public:
  PartedModel(nn::Network& network, int64_t parts, parallel::Group group);

  const Device& device() const override { return network_.device(); }
  std::span<const nn::ParameterTensor> tensors() const override { return network_.tensors(); }
  Buffer parameters() const override { return network_.parameters(); }
  Buffer gradient() const override { return network_.gradient(); }
  void launch_loss(const nn::Batch& batch, const Buffer& loss) override { network_.launch_loss(batch, loss); }
  void launch_gradient(const nn::Batch& batch, const Buffer& loss, uint64_t step) override;

 private:
  nn::Network& network_;
  int64_t parts_;
  parallel::Group group_;
  Buffer mine_, total_;  // (own parts, n + 1) and (n + 1): gradient, loss
};

}  // namespace lockstep::forecast
