// Kernels of the codec. m is the frame of a batch everywhere; words hold 32 points of a row, lowest bit first.
#pragma once

#include "lockstep/device.hpp"

namespace lockstep::flow {

inline constexpr int kSweeps = 8;            // of the ternary mask; more change nothing at a fixpoint
inline constexpr int64_t kBandChunk = 2048;  // modes of one group's sum
inline constexpr int64_t kPointChunk = 4096;
inline constexpr int kCodecLanes = 128;

inline int64_t chunks_of(int64_t count, int64_t chunk) { return (count + chunk - 1) / chunk; }

/// Between spectra and latents.
struct LatentKernels {
  static const Kernel& gather();   // latent(m, j) = spectrum(m, place[j]) gain[j]
  static const Kernel& scatter();  // half spectrum by the four sources of each mode
};

/// Ternary mask of a field: residual, peak, bits, sweeps.
struct MaskKernels {
  static const Kernel& rows(bool periodic);      // sums of a row's window
  static const Kernel& residual(bool periodic);  // w - the window's mean
  static const Kernel& peaks();                  // largest |r| of chunks
  static const Kernel& peak();
  static const Kernel& ternary();  // bits of r > t peak and of r < -t peak
  static const Kernel& sweep();    // sign of the sum of 3 x 3, periodic
  static const Kernel& support();  // share of points that are not 0
};

/// Energies of bands, and random fields of them.
struct BandKernels {
  static const Kernel& sums();        // of chunks of modes
  static const Kernel& classic();     // the four numbers of classic
  static const Kernel& amplitudes();  // of v2
  static const Kernel& classic_energies();
  static const Kernel& v2_energies();
  static const Kernel& noise();    // random modes, half spectrum
  static const Kernel& masked();   // sums of (mask r)^2 of chunks
  static const Kernel& factors();  // what brings them to their energy
  static const Kernel& add();      // w += mask r factor
};

}  // namespace lockstep::flow
