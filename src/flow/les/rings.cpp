// Sums over rings of modes: energy, enstrophy and palinstrophy, spectra, fluxes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "flow/les/solver.hpp"

namespace lockstep::flow {

void Solver::State::make_rings() {
  const double unit = 2 * kPi / std::max(model.grid.lx, model.grid.ly);
  std::vector<std::vector<int32_t>> modes_of_ring;
  std::vector<double> share(size_t(2 * modes.count()));
  const bool turned = evaluation.form().turned;
  for (int64_t row = 0; row < modes.rows(); ++row)
    for (int64_t ix = 0; ix < modes.columns(); ++ix) {
      const double kx = 2 * kPi / model.grid.lx * double(ix),
                   ky = 2 * kPi / model.grid.ly * double(modes.iy(row));
      const auto ring = size_t(std::hypot(kx, ky) / unit + 0.5);
      if (ring >= modes_of_ring.size()) modes_of_ring.resize(ring + 1);
      const int64_t at = turned ? ix * modes.rows() + row : row * modes.columns() + ix;
      modes_of_ring[ring].push_back(int32_t(at));
      share[size_t(2 * at)] = kx * kx + ky * ky;
      share[size_t(2 * at + 1)] = ix > 0 ? 1.0 : 0.5;
    }
  std::vector<int32_t> first{0}, order;
  for (const auto& list : modes_of_ring) {
    order.insert(order.end(), list.begin(), list.end());
    first.push_back(int32_t(order.size()));
  }
  rings = int64_t(modes_of_ring.size());
  ring_first = device.upload(first);
  ring_order = device.upload(order);
  ring_share = device.upload(Array::of(std::move(share), {modes.count(), 2}).to(storage));
}

std::vector<double> Solver::State::ring_sums(bool transfers) {
  if (!ring_first) make_rings();
  const Buffer n = spectrum_buffer();
  device.clear(n);
  if (transfers) {
    if (!advection) {
      Model inviscid = model;
      inviscid.closure = Closure::none;
      inviscid.forcing.kind = ForcingKind::none;
      inviscid.viscosity = inviscid.drag = inviscid.beta = 0;
      inviscid.hyper_viscosity = inviscid.hypo_viscosity = 0;
      KernelForm form = form_of(inviscid, false);
      form.turned = evaluation.form().turned;
      advection.emplace(device, inviscid, form, storage, members, stepping.variant);
    }
    advection->derive(w).run(device);
    advection->products(w);
    Arguments a = advection->numbers();
    advection->right_hand_side(a.set("w", w).set("out", n)).run(device);
  }
  const Buffer sums = device.allocate(storage, {members, rings, kRingColumns});
  Arguments a;
  a.set("w", w.reshape({members, modes.count(), 2})).set("n", n.reshape({members, modes.count(), 2}));
  a.set("first", ring_first).set("order", ring_order).set("share", ring_share).set("sums", sums);
  const Kernel k = with_precision(storage, []<class T>(T) {
    static const Kernel traced = RingKernels<T>::sums();
    return traced;
  });
  bound(k, {members, rings}, a).run(device);
  const Array numbers = device.download(sums).to(Storage::f64);
  return {numbers.as<double>().begin(), numbers.as<double>().end()};
}

std::vector<Budget> Solver::budget() const {
  State& s = *state_;
  const std::vector<double> sums = s.ring_sums(false);
  std::vector<Budget> all(static_cast<size_t>(s.members));
  for (int64_t m = 0; m < s.members; ++m)
    for (int64_t j = 0; j < s.rings; ++j) {
      const double* at = &sums[size_t((m * s.rings + j) * kRingColumns)];
      all[size_t(m)].enstrophy += at[0];
      all[size_t(m)].energy += at[1];
      all[size_t(m)].palinstrophy += at[2];
    }
  return all;
}

std::vector<Spectra> Solver::spectra() const {
  State& s = *state_;
  const std::vector<double> sums = s.ring_sums(true);
  std::vector<Spectra> all(static_cast<size_t>(s.members));
  for (int64_t m = 0; m < s.members; ++m) {
    Spectra& spectra = all[size_t(m)];
    double energy = 0, enstrophy = 0;
    for (int64_t j = 0; j < s.rings; ++j) {
      const double* at = &sums[size_t((m * s.rings + j) * kRingColumns)];
      spectra.enstrophy.push_back(at[0]);
      spectra.energy.push_back(at[1]);
      spectra.enstrophy_flux.push_back(enstrophy -= at[3]);
      spectra.energy_flux.push_back(energy -= at[4]);
    }
  }
  return all;
}

}  // namespace lockstep::flow
