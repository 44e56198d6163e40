// Derivatives by the values of sides over ranks: each rank has some rows of a side of x or y, and the first and the last
// rank have those of z.
#include "lockstep/pde/divided.hpp"
#include "pde/kernels/boundary_gradient.hpp"

namespace lockstep::pde {
namespace {

/// Numbers of a part that a rank has.
int64_t cells_of(const SidePart& part, const Mesh& mesh, int64_t planes, int rank, int ranks) {
  const auto& [nx, ny, nz] = mesh.cells;
  if (part.axis < 2) return planes * (part.axis == 0 ? ny : nx);
  return rank == (part.end == 0 ? 0 : ranks - 1) ? ny * nx : 0;
}

}  // namespace

DividedLoss::SideCells DividedLoss::side_cells(const Device& device, const Inputs& inputs) const {
  const Inputs held = held_inputs(device, inputs);
  const Checked checked(*state_->d, device, held);
  return own_cells(
      pde::side_cells(*state_, device, checked, loss_cotangents(*state_, device, checked, inputs.seed)));
}

DividedLoss::SideCells DividedLoss::own_cells(const SideCells& found) const {
  const std::vector<SidePart> whole = side_parts(*whole_), there = side_parts(*state_->d);
  SideCells mine(whole.size());
  for (size_t k = 0, next = 0; k < whole.size(); ++k) {
    if (next == there.size() || !(there[next] == whole[k])) continue;  // at a cut end
    const std::vector<double>& cells = found[next++];
    const int64_t planes = own().size(),
                  count = cells_of(whole[k], mesh(), planes, group_.rank(), group_.size());
    const auto first = cells.begin() + (whole[k].axis < 2 ? state_->part->first * (count / planes) : 0);
    mine[k].assign(first, first + count);
  }
  return mine;
}

std::vector<Loss::BoundaryGradient> DividedLoss::boundary_gradients(const SideCells& mine) const {
  std::vector<double> numbers;
  for (const std::vector<double>& part : mine) numbers.insert(numbers.end(), part.begin(), part.end());
  const std::vector<parallel::Bytes> from =
      group_.all_gather(parallel::bytes_of(std::span<const double>(numbers)));
  const std::vector<SidePart> parts = side_parts(*whole_);
  SideCells all(parts.size());
  for (int rank = 0; rank < group_.size(); ++rank) {
    std::vector<double> theirs;
    parallel::append_numbers(theirs, from[size_t(rank)]);
    auto at = theirs.begin();
    for (size_t k = 0; k < parts.size(); ++k) {
      const int64_t count = cells_of(parts[k], mesh(), own(rank).size(), rank, group_.size());
      all[k].insert(all[k].end(), at, at + count);
      at += count;
    }
  }
  return sum_sides(*whole_, std::move(all));
}

}  // namespace lockstep::pde
