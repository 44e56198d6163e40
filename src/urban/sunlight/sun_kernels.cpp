#include "urban/sunlight/sun_kernels.hpp"

#include "urban/rays/kernels.hpp"

namespace lockstep::urban::kernels {
namespace {

template <bool kPlants>
Kernel make_count_sun() {
  return kernel(kPlants ? "urban.sun.count.plants" : "urban.sun.count",
                [](At<2> at, Grid<f32, 3> shadow, InOut<u32, 3> counts) {
                  const auto add = [&](int plane, const Val<bool>& sees) {
                    counts(plane, at) = counts(plane, at) + select(sees, Val<u32>(1u), Val<u32>(0u));
                  };
                  const Val<bool> open = shadow(ShadowPlanes::kSun, at) > 0.0f;
                  add(kPastBuildings, open);
                  if (kPlants) add(kPastPlants, open & (shadow(ShadowPlanes::kVegetation, at) > 0.0f));
                });
}

}  // namespace

const Kernel& count_sun(bool plants) {
  static const Kernel all[] = {make_count_sun<false>(), make_count_sun<true>()};
  return all[plants];
}

}  // namespace lockstep::urban::kernels
