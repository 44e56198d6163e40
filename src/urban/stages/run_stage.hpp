// Stages of the model and their inputs. A new one is an entry of radiation_stages() or comfort_stages().
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "io/arrays/npy.hpp"
#include "lockstep/urban/stages.hpp"

namespace lockstep::urban {

/// The arrays given to a stage.
class StageInput {
 public:
  explicit StageInput(const io::NpzArrays& arrays);
  bool has(std::string_view name) const;
  /// Throws InputError for an absent array, and for one of several elements.
  double scalar(std::string_view name) const;
  double scalar_or(std::string_view name, double otherwise) const {
    return has(name) ? scalar(name) : otherwise;
  }
  /// The elements as f64; one element is repeated. Throws InputError for an absent array and where the shape is
  /// another than that of earlier grids.
  std::vector<double> grid(std::string_view name) const;
  /// The elements as they are, in C order.
  std::vector<double> all(std::string_view name) const;
  const Sizes& shape_of(std::string_view name) const;
  /// The shape of all arrays of `names` with more than one element; () where none has.
  void use_shape_of(const std::vector<StageArray>& names);
  const Sizes& shape() const { return shape_; }
  size_t elements() const;
  /// An output in the shape of the grids.
  Array array(std::vector<double> values) const;

 private:
  const io::NpzArrays& arrays_;
  Sizes shape_ = Sizes(std::vector<int64_t>{});
};

struct RunnableStage : Stage {
  std::function<io::NpzArrays(const StageInput&)> run;
};
/// Those of the radiation, from sun to radiation.
std::vector<RunnableStage> radiation_stages();
/// utci and pet.
std::vector<RunnableStage> comfort_stages();

/// As the public one, for arrays of a file.
io::NpzArrays run_urban_stage(std::string_view name, const io::NpzArrays& arrays);

}  // namespace lockstep::urban
