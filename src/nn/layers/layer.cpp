#include "nn/layers/layer.hpp"

#include <array>

#include "lockstep/error.hpp"

namespace lockstep::nn {

void Layer::bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients) {
  parameters_.assign(parameters.begin(), parameters.end());
  gradients_.assign(gradients.begin(), gradients.end());
}

std::string_view kind_name(const LayerSpec& spec) {
  // In the order of LayerVariant.
  constexpr std::array<std::string_view, std::variant_size_v<LayerVariant>> kNames{
      "dense",     "conv2d",  "max_pool2d", "flatten",   "layer_norm",
      "embedding", "dropout", "gru",        "attention", "residual"};
  return kNames[spec.index()];
}

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, const LayerPlace& place) {
  return std::visit([&](const auto& s) { return make_layer(s, place); }, spec.variant());
}

void expect_layer(bool good, const LayerPlace& place, const std::string& what, const char* expected) {
  if (!good) throw InputError(what, place.where, expected);
}

}  // namespace lockstep::nn
