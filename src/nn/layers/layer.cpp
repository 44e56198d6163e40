#include "nn/layers/layer.hpp"

namespace lockstep::nn {

void Layer::bind(std::span<const Buffer> parameters, std::span<const Buffer> gradients) {
  parameters_.assign(parameters.begin(), parameters.end());
  gradients_.assign(gradients.begin(), gradients.end());
}

std::string_view kind_name(const LayerSpec& spec) {
  struct Kinds {
    std::string_view operator()(const Dense&) const { return "dense"; }
  };
  return std::visit(Kinds{}, static_cast<const LayerSpec::variant&>(spec));
}

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, const LayerPlace& place) {
  return std::visit([&](const auto& s) { return make_layer(s, place); },
                    static_cast<const LayerSpec::variant&>(spec));
}

}  // namespace lockstep::nn
