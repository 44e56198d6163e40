// Buffers, kernels and the recorded block of steps of a Solver.
#pragma once

#include <optional>

#include "flow/les/recorder.hpp"

namespace lockstep::flow {

/// Steps of a recorded graph, and between two looks for a blow-up.
inline constexpr int64_t kBlock = 10;

struct Solver::State {
  State(const Device& device, const Model& model, const Stepping& stepping, Storage storage, int64_t members,
        const parallel::Group& group);

  Device device;
  Model model;
  Stepping stepping;
  Modes modes;
  Storage storage;
  int64_t members;
  bool adaptive;
  Evaluation evaluation;

  Buffer w, y, one, two, sum, weights,
      good;           // spectra of the state, of stages, ETD's weights, the last valid state
  Buffer derivative;  // of w, where it was requested
  Buffer clock, status, keys;
  std::vector<Launch> advances;  // one a stage
  Launch look, tick_one, tick_block, keep, right_hand_side;
  Fft to_grid, from_grid;
  Buffer grid_field;
  std::optional<Graph> block;
  std::optional<Evaluation> advection;  // for spectra
  Buffer ring_first, ring_order, ring_share;
  int64_t rings = 0;
  std::optional<Recorder> recorder;

  /// As states lie: turned or not.
  Buffer spectrum_buffer() const;
  /// A spectrum as (member, ky, kx), in place or in y, which holds nothing between two steps; and the way back.
  Buffer rows_first(const Buffer& spectrum) const;
  Buffer rows_first() const { return y.reshape({members, modes.rows(), modes.columns(), 2}); }
  void turn(const Buffer& from, const Buffer& to) const;
  Launch bound(const Kernel& kernel, const Shape& domain, const Arguments& arguments) const;
  void make_launches();
  void make_weights();
  /// `looking`: measures the speed first, as every adaptive step does.
  void step(bool looking) const;
  void run_block() const;
  /// Time starts again from the spectrum that is there.
  void begin() const;
  /// Blocks, then single steps.
  void advance(int64_t steps);
  void make_derivative();
  /// The right-hand side of w into `derivative`, after products().
  void run_right_hand_side() const;
  /// Over ranks: the whole state on each.
  void gather() const;
  void record_moment();
  void read_moments();
  /// Fields of w, as each step expects them.
  void restart_fields() const;
  Array download(const Buffer& spectrum) const { return device.download(rows_first(spectrum)); }
  Array field_of(const Buffer& spectrum) const;
  std::vector<double> clock_column(int column) const;
  void make_rings();
  /// (members, rings, kRingColumns); transfers are 0 unless requested.
  std::vector<double> ring_sums(bool transfers);
};

}  // namespace lockstep::flow
