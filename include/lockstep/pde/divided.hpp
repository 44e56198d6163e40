// A loss divided over ranks: each rank computes the loss and the gradients of some planes along z.
//
//   const pde::DividedLoss loss(system, mesh, group);
//   pde::BoundLoss bound = loss.bind(device, inputs);         // arrays of loss.held() planes
//   bound.run();
//   loss.terms(bound);                                        // every rank: the terms of the whole grid
//   loss.own_planes(bound.gradient("t", 0));                  // of loss.own() planes
//   loss.refresh(device, arrays);                             // every rank: gets the planes that its neighbours own
//
// bind_planes() binds arrays that contain only the rank's own planes:
//
//   const pde::BoundPlanes bound = loss.bind_planes(device, inputs);
//   bound.run();                                              // every rank: gets the planes of its neighbours first
//
// Terms and gradients have the same bits for any number of ranks. Gradients are bit-identical to those of Loss, and so
// are the terms of the two-kernel and two-sweep paths. The fused path sums over blocks of planes, which depend on the
// grid only.
#pragma once

#include "lockstep/parallel.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {

struct Discretisation;

/// A divided loss on arrays with only the planes of this rank.
class BoundPlanes {
 public:
  /// Gets the planes of neighbours, launches the computation and adds the terms of all ranks. Collective.
  void run() const;
  /// Terms of the whole grid at the last run.
  const std::vector<double>& terms() const;
  const std::vector<std::string>& term_names() const;
  /// A copy of the gradient of this rank's planes; empty if not requested.
  Buffer gradient(std::string_view field, int level) const;
  Path path() const;

  struct State;
  explicit BoundPlanes(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

class DividedLoss {
 public:
  /// Every rank passes the same system and mesh. Throws as Loss(), UnsupportedError for fewer than three dimensions, and
  /// GroupError on every rank for more ranks than blocks of planes.
  DividedLoss(const System& system, const Mesh& mesh, const parallel::Group& group);

  /// The mesh of the whole grid.
  const Mesh& mesh() const;
  /// The planes that a rank computes.
  parallel::Range own(int rank) const;
  parallel::Range own() const;
  /// The planes of this rank's arrays: its own and those that they depend on. If z is periodic, they may begin below
  /// 0 and end beyond the grid.
  parallel::Range held() const;

  /// As Loss::bind, with fields, mask and gradients of the held planes and profiles of the whole grid. Gradients are
  /// those of the whole loss and valid in this rank's own planes only. The value of the loss is that of
  /// DividedLoss::terms(). Throws as Loss::bind, and UnsupportedError for several members and for rows.
  BoundLoss bind(const Device& device, const Inputs& inputs, const LossOptions& options = {}) const;
  /// As Loss::bind_trajectory, with the two-kernel path.
  BoundLoss bind_trajectory(const Device& device, const TrajectoryInputs& inputs,
                            const LossOptions& options = {}) const;
  /// As Loss::residuals, for this rank's planes.
  Buffer residuals(const Device& device, const Inputs& inputs) const;

  /// The same for fields and masks that contain only this rank's own planes. Collective. Throws GroupError on every rank
  /// if systems, meshes, options, types or levels differ, or if a rank throws.
  BoundPlanes bind_planes(const Device& device, const Inputs& inputs, const LossOptions& options = {}) const;
  BoundPlanes bind_planes(const Device& device, const TrajectoryInputs& inputs,
                          const LossOptions& options = {}) const;
  Buffer residuals_of_planes(const Device& device, const Inputs& inputs) const;
  std::vector<Loss::BoundaryGradient> boundary_gradients_of_planes(const Device& device,
                                                                   const Inputs& inputs) const;
  Loss::Numbers number_gradients_of_planes(const Device& device, const Inputs& inputs) const;

  /// Sums of parts of the planes, from which the terms are computed.
  struct Sums {
    int64_t rows = 0;            // residuals, level by level
    std::vector<double> values;  // (rows, parts)
    std::vector<double> scale;   // (rows): factor from the sum to the weighted mean square
    std::string order;           // the order of the sums within a part
  };
  /// The sums of this rank's planes, after a run.
  Sums sums(const BoundLoss& bound) const;
  /// The sums of every rank. Collective. Throws GroupError on every rank if devices or paths of the ranks use different
  /// orders of summation.
  Sums gather(Sums mine) const;
  /// The terms from the sums of all planes.
  std::vector<double> terms(const Device& device, const Sums& all) const;
  /// The three steps above in one call. Collective.
  std::vector<double> terms(const BoundLoss& bound) const;

  /// side_cells: contributions of this rank's planes to the derivatives with respect to boundary values, for fields of
  /// the held planes, as numbers for each part of a boundary. boundary_gradients: combines those of every rank,
  /// bit-identical to Loss::boundary_gradients. Collective.
  using SideCells = std::vector<std::vector<double>>;
  SideCells side_cells(const Device& device, const Inputs& inputs) const;
  std::vector<Loss::BoundaryGradient> boundary_gradients(const SideCells& mine) const;

  /// This rank's planes of an array (…, held planes, ny, nx).
  Buffer own_planes(const Buffer& array) const;
  /// Overwrites the planes of such arrays that other ranks own with the values of these ranks. Collective.
  void refresh(const Device& device, std::span<const Buffer> arrays) const;
  /// The same without blocking the host. Later work of the device runs after it, and terms() waits for it.
  void begin_refresh(const Device& device, std::span<const Buffer> arrays) const;

 private:
  friend struct PlaneBinding;
  SideCells own_cells(const SideCells& found) const;
  Inputs held_inputs(const Device& device, const Inputs& inputs) const;
  Buffer held_profile(const Device& device, const std::string& name, const Buffer& profile) const;
  parallel::Range held(int rank) const;

  parallel::Group group_;
  std::shared_ptr<const Discretisation> whole_;
  std::shared_ptr<Loss::State> state_;
  int64_t blocks_ = 1;
  std::string system_;  // as text
};

}  // namespace lockstep::pde
